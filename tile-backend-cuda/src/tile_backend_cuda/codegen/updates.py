"""Atomic updates of several elements, as calls of the prelude: an operation and a type in, widths and calls out."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.dtypes import DType
from tile_core.program import Invoke, Place, Stmt

from ..atoms import SHORT

# PTX ISA, red: .f16x2 from sm_60 on; .bf16x2 and the vectors .v2 and .v4 of up to 16 bytes from sm_90 on.
PAIRS = {"float16": (2,)}
WIDE = {"float16": (8, 4, 2), "bfloat16": (8, 4, 2), "float32": (4, 2)}


@dataclass(frozen=True)
class Reductions:
    """``red.global.add`` of an architecture. ``wide``: whether it has vectors."""

    wide: bool

    def widths(self, op: str, dtype: DType) -> tuple[int, ...]:
        return (WIDE if self.wide else PAIRS).get(dtype.name, ()) if op == "add" else ()

    def update(self, op: str, to: Place, values: Place, count: int) -> Stmt:
        return Invoke(f"reduce_{op}_{SHORT[to.buffer.dtype.name]}x{count}", (to, values))
