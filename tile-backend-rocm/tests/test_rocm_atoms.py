"""Each MFMA layout against AMD's formula, lane by lane and register by register."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

import tile_backend_rocm.atoms as atoms
from tile_core.layout.layout import Axis, Layout, bijective

Formula = Callable[[int, int], tuple[int, int]]

TABLE: list[tuple[str, Layout, int, Formula]] = [
    ("32 C", atoms.MFMA_32_C, 16, lambda t, i: (8 * (i // 4) + 4 * (t // 32) + i % 4, t % 32)),
    ("16 C", atoms.MFMA_16_C, 4, lambda t, i: (4 * (t // 16) + i, t % 16)),
]
for _p in (1, 2, 4, 8):
    TABLE += [
        (f"32 A {_p}", atoms.mfma_a(32, _p), _p, lambda t, i, p=_p: (t % 32, p * (t // 32) + i)),
        (f"32 B {_p}", atoms.mfma_b(32, _p), _p, lambda t, i, p=_p: (p * (t // 32) + i, t % 32)),
        (f"16 A {_p}", atoms.mfma_a(16, _p), _p, lambda t, i, p=_p: (t % 16, p * (t // 16) + i)),
        (f"16 B {_p}", atoms.mfma_b(16, _p), _p, lambda t, i, p=_p: (p * (t // 16) + i, t % 16)),
    ]


@pytest.mark.parametrize(("name", "layout", "registers", "formula"), TABLE, ids=[t[0] for t in TABLE])
def test_fragment(name: str, layout: Layout, registers: int, formula: Formula) -> None:
    assert bijective(layout, {Axis.THREAD: 64, Axis.REGISTER: registers})
    for t, i in product(range(64), range(registers)):
        at = layout.place(formula(t, i))
        assert (at.get(Axis.THREAD, 0), at.get(Axis.REGISTER, 0)) == (t, i), name


def test_the_row_that_emulators_get_wrong() -> None:
    """AMD's calculator: D[4][0] of 32x32x8 is register 0 of lane 32."""
    at = atoms.MFMA_32_C.place((4, 0))
    assert (at[Axis.THREAD], at.get(Axis.REGISTER, 0)) == (32, 0)


@pytest.mark.parametrize("arch", ["GFX90A", "GFX942", "GFX950"])
def test_tables(arch: str) -> None:
    table = getattr(atoms, arch)
    assert len({a.name for a in table}) == len(table) and {a.threads for a in table} == {64}
    assert table[0].name.split(".")[1] == ("32x32x16" if arch == "GFX950" else "32x32x8")
