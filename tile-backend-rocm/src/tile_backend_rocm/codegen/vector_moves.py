"""Vector loads and stores, and exchanges between lanes, as calls of the prelude: what the lowering asks for, the names for it."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.expr import Expr, Var, const
from tile_core.program import Invoke, Place, Stmt


@dataclass(frozen=True)
class RocmVectors:
    """``VectorMoves`` of a wave of ``subgroup`` lanes."""

    subgroup: int
    widths: tuple[int, ...] = (16, 8, 4, 2)

    def move(self, to: Place, source: Place, size: int, inside: Expr | None = None) -> Stmt:
        if inside is None:
            return Invoke(f"move_b{size * 8}", (to, source))
        return Invoke(f"fetch_b{size * 8}", (to, source, inside))

    def swap(self, value: Expr, distance: int, result: Var) -> Stmt:
        return Invoke(f"swap_{_kind(value)}<{distance}>", (value,), result)

    def from_below(self, value: Expr, distance: int, result: Var) -> Stmt:
        return Invoke(f"below_{_kind(value)}", (value, const(distance)), result)

    def of_lane(self, value: Expr, lane: Expr, result: Var) -> Stmt:
        return Invoke(f"of_lane_{_kind(value)}", (value, lane), result)


def _kind(value: Expr) -> str:
    return "f32" if value.dtype.name == "float32" else f"b{value.dtype.bits}"
