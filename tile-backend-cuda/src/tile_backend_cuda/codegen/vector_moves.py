"""Vector loads and stores, and shuffles, as calls of the prelude: what the lowering asks for, CUDA's names for it."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.expr import Expr, Var, const
from tile_core.program import Invoke, Place, Stmt


@dataclass(frozen=True)
class CudaVectors:
    """``VectorMoves`` of NVIDIA GPUs."""

    widths: tuple[int, ...] = (16, 8, 4, 2)
    subgroup: int = 32

    def move(self, to: Place, source: Place, size: int, inside: Expr | None = None) -> Stmt:
        if inside is None:
            return Invoke(f"move_b{size * 8}", (to, source))
        return Invoke(f"fetch_b{size * 8}", (to, source, inside))

    def swap(self, value: Expr, distance: int, result: Var) -> Stmt:
        return Invoke(_shuffle("xor", value), (value, const(distance)), result)

    def from_below(self, value: Expr, distance: int, result: Var) -> Stmt:
        return Invoke(_shuffle("up", value), (value, const(distance)), result)

    def of_lane(self, value: Expr, lane: Expr, result: Var) -> Stmt:
        return Invoke(_shuffle("idx", value), (value, lane), result)


def _shuffle(kind: str, value: Expr) -> str:
    suffix = "f32" if value.dtype.name == "float32" else f"b{value.dtype.bits}"
    return f"shfl_{kind}_{suffix}"
