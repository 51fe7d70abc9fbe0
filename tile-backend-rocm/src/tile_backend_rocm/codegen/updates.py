"""Atomic updates of several elements, as calls of the prelude: an operation and a type in, widths and calls out."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.dtypes import DType
from tile_core.program import Invoke, Place, Stmt

from ..atoms import SHORT


@dataclass(frozen=True)
class PackedAdds:
    """``global_atomic_pk_add``. ``types``: names of the 16-bit types that the architecture has it for."""

    types: tuple[str, ...]

    def widths(self, op: str, dtype: DType) -> tuple[int, ...]:
        return (2,) if op == "add" and dtype.name in self.types else ()

    def update(self, op: str, to: Place, values: Place, count: int) -> Stmt:
        return Invoke(f"atom_{op}_{SHORT[to.buffer.dtype.name]}x{count}", (to, values))
