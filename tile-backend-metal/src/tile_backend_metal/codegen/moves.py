"""Vector loads and stores and shuffles: what the lowering asks for, the functions it calls, and their text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product

from tile_core.expr import Expr, Var, const
from tile_core.program import Invoke, Place, Stmt

from .spaces import PRIVATE, SPACES

LANES = 32  # "Metal Feature Set Tables": threads of a simdgroup of every Apple GPU

# Vectors, also where a scalar has the size: an access of a vector type may alias elements of any type.
WORDS = {16: "uint4", 8: "uint2", 4: "ushort2", 2: "uchar2"}

MOVE = """
template <class A, class B> TILE_DEVICE void {name}({to} A* to, {source} B* source) {{
  *reinterpret_cast<{to} {word}*>(to) = *reinterpret_cast<{source} {word}*>(source);
}}
"""
FETCH = """
template <class A, class B> TILE_DEVICE void {name}({to} A* to, {source} B* source, bool inside) {{
  {to} {word}* const target = reinterpret_cast<{to} {word}*>(to);
  if (inside) *target = *reinterpret_cast<{source} {word}*>(source);
  else *target = {word}(0);
}}
"""
NAMED = re.compile(r"\btile_(move|fetch)(\d+)_(device|threadgroup|thread)_from_(device|threadgroup|thread)\b")

# MSL 6.9.2: data of 64 bits is not shuffled; lanes for which there is no source keep their own with simd_shuffle_up.
WORDWISE = r"""
TILE_DEVICE uint tile_shuffle_xor(uint x, int distance) { return metal::simd_shuffle_xor(x, ushort(distance)); }
TILE_DEVICE uint tile_shuffle_up(uint x, int distance) { return metal::simd_shuffle_up(x, ushort(distance)); }
TILE_DEVICE uint tile_shuffle_at(uint x, int lane) { return metal::simd_shuffle(x, ushort(lane)); }
"""
OTHER = """TILE_DEVICE float tile_shuffle_{kind}(float x, int by) {{
  return as_type<float>(tile_shuffle_{kind}(as_type<uint>(x), by));
}}
TILE_DEVICE ulong tile_shuffle_{kind}(ulong x, int by) {{
  const uint low = tile_shuffle_{kind}(uint(x), by), high = tile_shuffle_{kind}(uint(x >> 32), by);
  return ulong(high) << 32 | low;
}}
"""
SHUFFLES = WORDWISE + "".join(OTHER.format(kind=kind) for kind in ("xor", "up", "at"))


def all_moves() -> str:
    """Every one of these functions."""
    spaces = (*SPACES.values(), PRIVATE)
    names = (
        f"tile_{kind}{size}_{to}_from_{source}"
        for kind, size, to, source in product(("move", "fetch"), WORDS, spaces, spaces)
    )
    return moves_text(" ".join(names))


def moves_text(kernels: str) -> str:
    """The functions for the moves that ``kernels`` call."""
    found = sorted({m.group(0): m for m in NAMED.finditer(kernels)}.items())
    return "".join(
        (MOVE if m[1] == "move" else FETCH).format(name=name, to=m[3], source=m[4], word=WORDS[int(m[2])])
        for name, m in found
    )


@dataclass(frozen=True)
class MetalVectors:
    """``VectorMoves`` of Apple GPUs."""

    widths: tuple[int, ...] = tuple(WORDS)
    subgroup: int = LANES

    def move(self, to: Place, source: Place, size: int, inside: Expr | None = None) -> Stmt:
        kind = "move" if inside is None else "fetch"
        name = f"tile_{kind}{size}_{_space(to)}_from_{_space(source)}"
        return Invoke(name, (to, source) if inside is None else (to, source, inside))

    def swap(self, value: Expr, distance: int, result: Var) -> Stmt:
        return Invoke("tile_shuffle_xor", (value, const(distance)), result)

    def from_below(self, value: Expr, distance: int, result: Var) -> Stmt:
        return Invoke("tile_shuffle_up", (value, const(distance)), result)

    def of_lane(self, value: Expr, lane: Expr, result: Var) -> Stmt:
        return Invoke("tile_shuffle_at", (value, lane), result)


def _space(p: Place) -> str:
    return SPACES.get(p.buffer.space, PRIVATE)
