"""What WGSL has beyond plain loads, stores and arithmetic, as the lowering asks for it: names that the printer knows."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.dtypes import DType
from tile_core.expr import Expr, Var, const
from tile_core.hardware import TargetInfo
from tile_core.lowering.simt.instructions import Instructions, VectorMoves
from tile_core.program import Invoke, Place, Stmt

from .matrices import SubgroupMatrices

MOVE, DOT = "move", "dot"
SWAP, BELOW, LANE = "swap", "from_below", "of_lane"
SHUFFLES = (SWAP, BELOW, LANE)
DOT_BYTES = 4


@dataclass(frozen=True)
class WgslVectors:
    """``VectorMoves`` by vec4 accesses, and by subgroup shuffles where ``subgroup`` is above 1."""

    subgroup: int = 1
    widths: tuple[int, ...] = (16, 8, 4)

    def move(self, to: Place, source: Place, size: int, inside: Expr | None = None) -> Stmt:
        guard = () if inside is None else (inside,)
        return Invoke(f"{MOVE}_{size}", (to, source, *guard))

    def swap(self, value: Expr, distance: int, result: Var) -> Stmt:
        return Invoke(SWAP, (value, const(distance)), result)

    def from_below(self, value: Expr, distance: int, result: Var) -> Stmt:
        return Invoke(BELOW, (value, const(distance)), result)

    def of_lane(self, value: Expr, lane: Expr, result: Var) -> Stmt:
        return Invoke(LANE, (value, lane), result)


@dataclass(frozen=True)
class PackedDots:
    """``dot4I8Packed`` and ``dot4U8Packed``: four products of bytes (WGSL, packed_4x8_integer_dot_product)."""

    def width(self, a: DType, b: DType, c: DType) -> int:
        return DOT_BYTES if a == b and a.name in ("int8", "uint8") and c.name in ("int32", "uint32") else 0

    def dot(self, a: Place, b: Place, c: Expr, result: Var) -> Stmt:
        return Invoke(DOT, (a, b, c), result)


def instructions(info: TargetInfo) -> Instructions:
    """The groups that the target has."""
    vectors: VectorMoves = WgslVectors(info.subgroup)
    wholes = SubgroupMatrices(info.atoms) if info.atoms else None
    return Instructions(vectors=vectors, dots=PackedDots(), wholes=wholes)


def moved_bytes(s: Invoke) -> int:
    """Bytes that each place of a call is the first of."""
    kind, _, size = s.function.partition("_")
    return int(size) if kind == MOVE else DOT_BYTES
