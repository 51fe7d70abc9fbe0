"""The parameters of every entry point of a program, in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

<<<<<<< HEAD
from ..expr import Buffer, Var
from ..program import Param, TileProgram
from ..program.verify import used_dimensions
from ..program.visit import buffers
from ..signature import workspaces
=======
from ..backend import LaunchParam
from ..errors import Unsupported
from ..expr import Binary, Buffer, Cast, Const, Expr, Space, Var, variables
from ..program import Alloc, Param, TileProgram
from ..program.visit import buffers
from ..signature import launch_params

MEMBERS = frozenset(("+", "-", "*", "//", "%"))


def extent_text(x: int | Expr) -> int | str:
    """An extent as a number, or as Python text over the names of symbolic dimensions and scalars."""
    if isinstance(x, int):
        return x
    match x:
        case Const():
            return int(x.value)
        case Var():
            return x.name
        case Cast():
            return extent_text(x.value)
        case Binary(op=("min" | "max")):
            return f"{x.op}({extent_text(x.a)}, {extent_text(x.b)})"
        case Binary(op=op) if op in MEMBERS:
            return f"({extent_text(x.a)} {op} {extent_text(x.b)})"
        case Binary(op=("truncdiv" | "truncmod")):
            return f"({extent_text(x.a)} {'//' if x.op == 'truncdiv' else '%'} {extent_text(x.b)})"
        case _:
            raise Unsupported("this extent cannot be computed at launch", x.span, help="use + - * // % min max on dimensions")


def symbols(program: TileProgram) -> tuple[Var, ...]:
    """Symbolic dimensions that are no parameters themselves, in order of first appearance in the signature."""
    given = {p.value for p in program.params if isinstance(p.value, Var)}
    found: dict[Var, None] = {}
    for tensor in program.tensors:
        for x in (*tensor.shape, *(tensor.strides or ())):
            if isinstance(x, Expr):
                for v in variables(x):
                    if v not in given:
                        found.setdefault(v)
    return tuple(found)


def workspaces(program: TileProgram) -> tuple[Buffer, ...]:
    """Global memory that the program allocates before its launches."""
    return tuple(s.buffer for s in program.body if isinstance(s, Alloc) and s.buffer.space is Space.GLOBAL)
>>>>>>> main


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

<<<<<<< HEAD
    @property
    def count(self) -> int:
        return len(self.params) + len(self.symbols) + len(self.workspaces)
=======
    def launch_params(self) -> tuple[LaunchParam, ...]:
        """Parameters as the runtime sees them: without workspaces, which the loaded kernel allocates."""
        return launch_params(self.program)
>>>>>>> main


def pointer_tensors(program: TileProgram) -> Iterator[Buffer]:
    """Tensors made over pointer parameters inside the kernel."""
    return (b for b in buffers(program.body) if b.base is not None)
