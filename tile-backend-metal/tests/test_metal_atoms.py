"""The simdgroup matrix against its formula, lane by lane."""

from __future__ import annotations

from itertools import product

import tile_backend_metal.atoms as atoms
from tile_core.layout.layout import Axis, bijective


def test_simdgroup_matrix() -> None:
    assert bijective(atoms.SIMDGROUP_8X8, {Axis.THREAD: 32, Axis.REGISTER: 2})
    for t, i in product(range(32), range(2)):
        at = atoms.SIMDGROUP_8X8.place(((t // 4 & 4) + t // 2 % 4, (t // 4 & 2) * 2 + t % 2 * 2 + i))
        assert (at.get(Axis.THREAD, 0), at.get(Axis.REGISTER, 0)) == (t, i)


def test_table() -> None:
    assert [a.name for a in (*atoms.ATOMS, *atoms.BFLOAT16)] == [
        "simdgroup.8x8x8.float32.float16",
        "simdgroup.8x8x8.float16.float16",
        "simdgroup.8x8x8.float32.float32",
        "simdgroup.8x8x8.float32.bfloat16",
    ]
