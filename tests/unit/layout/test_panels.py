"""Shared-memory tiles against the rule of the hardware that reads them, byte by byte."""

from __future__ import annotations

from itertools import product

import pytest

from tile_core.layout import Axis, panels
from tile_core.layout.layout import bijective


@pytest.mark.parametrize("span", [32, 64, 128])
@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize(("rows", "count"), [(8, 1), (64, 2), (176, 3)])
def test_span_tile(span: int, bits: int, rows: int, count: int) -> None:
    width, size = span * 8 // bits, bits // 8
    tile = panels.span_tile((rows, width * count), span, bits)
    mask = {32: 1, 64: 3, 128: 7}[span]
    seen = set()
    for r, c in product(range(rows), range(width * count)):
        address = (c // width * rows + r) * span + c % width * size
        address ^= (address >> 7 & mask) << 4  # the rule of the tensor map: 16-byte chunk ^= 128-byte line
        assert tile.place((r, c))[Axis.MEMORY] * size == address
        seen.add(address)
    assert len(seen) == rows * width * count and max(seen) < tile.footprint() * size


def test_core_matrices() -> None:
    layout = panels.core_matrices((64, 64), 16)
    assert bijective(layout, {Axis.MEMORY: 4096})
    for r, c in product(range(64), range(64)):
        core = r // 8 * 8 + c // 8
        assert layout.place((r, c)).get(Axis.MEMORY, 0) == core * 64 + r % 8 * 8 + c % 8


def test_row_major_with_padded_rows() -> None:
    tile = panels.row_major((4, 3, 10), 16)
    assert tile.place((2, 1, 7))[Axis.MEMORY] == (2 * 3 + 1) * 16 + 7


def test_a_width_that_does_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="104 columns"):
        panels.span_tile((8, 104), 128, 16)
