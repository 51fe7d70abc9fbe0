"""The parameters of every entry point of a program, in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..expr import Buffer, Var
from ..program import Param, TileProgram
from ..program.verify import used_dimensions
from ..program.visit import buffers
from ..signature import workspaces


@dataclass(frozen=True)
class Interface:
    """Those of the program and its symbolic dimensions (as ``signature.launch_spec`` lists them), then workspaces."""

    program: TileProgram
    params: tuple[Param, ...]
    symbols: tuple[Var, ...]
    workspaces: tuple[Buffer, ...]

    @staticmethod
    def of(program: TileProgram) -> Interface:
        symbols = tuple(used_dimensions(program))
        return Interface(program, program.params, symbols, workspaces(program))

    @property
    def count(self) -> int:
        return len(self.params) + len(self.symbols) + len(self.workspaces)


def pointer_tensors(program: TileProgram) -> Iterator[Buffer]:
    """Tensors made over pointer parameters inside the kernel."""
    return (b for b in buffers(program.body) if b.base is not None)
