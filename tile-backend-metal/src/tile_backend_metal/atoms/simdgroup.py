"""Apple's simdgroup matrices as data: 8x8 tiles over 32 lanes, two elements in each.

The order of elements is not documented by Apple: it is the one that public reverse engineering agrees on, so generated
code must not rely on it except through ``simdgroup_load`` and ``simdgroup_store``.
"""

from __future__ import annotations

from tile_core.hardware import Atom
from tile_core.layout.digits import lane, reg, tile
from tile_core.layout.layout import Layout

SOURCE = "Metal Shading Language Specification, simdgroup matrices; element order from secondary sources"

SIMDGROUP_8X8 = tile((8, 8), (lane(2, 16), lane(4, 2)), (lane(2, 8), lane(2), reg(2)))


def _accumulator(_width: int) -> Layout:
    return SIMDGROUP_8X8


def simdgroup(a: str, c: str, rate: int) -> Atom:
    """An 8x8x8 multiply-add of two tiles of type ``a`` into ``c``; ``rate`` in operations per clock and core."""
    name = f"simdgroup.8x8x8.{c}.{a}"
    tiles = SIMDGROUP_8X8, SIMDGROUP_8X8
    return Atom(name, (8, 8, 8), 32, (a, a, c), *tiles, _accumulator, rate, source=SOURCE)


# rate: 128 fused multiply-adds per clock and core, for every type (estimated)
ATOMS = (
    simdgroup("float16", "float32", 256),
    simdgroup("float16", "float16", 256),
    simdgroup("float32", "float32", 256),
)
BFLOAT16 = (simdgroup("bfloat16", "float32", 256),)  # Apple9 and Metal 3.1
