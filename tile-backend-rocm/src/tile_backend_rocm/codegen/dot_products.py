"""Dot products of bytes, as calls of the prelude: types and places in, calls out."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.dtypes import DType
from tile_core.expr import Expr, Var
from tile_core.program import Invoke, Place, Stmt

NAMED = {"int8": "i8", "uint8": "u8"}


@dataclass(frozen=True)
class ByteDots:
    """``v_dot4``: four products of bytes."""

    def width(self, a: DType, b: DType, c: DType) -> int:
        return 4 if a == b and a.name in NAMED and c.name == "int32" else 0

    def dot(self, a: Place, b: Place, c: Expr, result: Var) -> Stmt:
        return Invoke(f"dot4_{NAMED[a.buffer.dtype.name]}", (a, b, c), result)
