"""Fractal layouts against their definition, element by element."""

from __future__ import annotations

from itertools import product

import pytest

import tile_backend_ascend.tiles as tiles
from tile_core.layout.layout import Axis, bijective


@pytest.mark.parametrize("order", tiles.ORDERS)
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_fractal(order: str, bits: int) -> None:
    c0 = 256 // bits
    height, width = (16, c0) if order[0] == "z" else (c0, 16)
    rows, columns = 3 * height, 5 * width
    layout = tiles.fractal((rows, columns), bits, order)
    assert bijective(layout, {Axis.MEMORY: rows * columns})
    for r, c in product(range(rows), range(columns)):
        inside = r % height * width + c % width if order[0] == "z" else c % width * height + r % height
        fractal = r // height * 5 + c // width if order[1] == "Z" else c // width * 3 + r // height
        assert layout.place((r, c)).get(Axis.MEMORY, 0) == fractal * height * width + inside


def test_parts_of_fractals_are_refused() -> None:
    with pytest.raises(ValueError, match="fractals"):
        tiles.fractal((24, 16), 16, "zN")


def test_atoms_have_one_thread() -> None:
    assert {a.threads for a in tiles.ATOMS} == {1} and {a.engine for a in tiles.ATOMS} == {"cube"}
