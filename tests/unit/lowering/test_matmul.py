"""How a product is cut into blocks for the vector registers."""

from __future__ import annotations

import pytest

from tile_core.lowering.matmul import blocking


@pytest.mark.parametrize(("lanes", "registers"), [(16, 32), (8, 16), (4, 16), (4, 32)])
@pytest.mark.parametrize("m", [1, 2, 5, 6, 13, 14, 15, 64, 100, 128, 256])
@pytest.mark.parametrize("n", [1, 8, 33, 104, 256])
def test_blocks_fit_the_registers(m, n, lanes, registers):
    b = blocking(m, n, lanes, registers)
    assert 1 <= b.rows <= m
    assert b.rows * b.vectors + b.vectors + 1 <= registers
    assert (b.vectors - 1) * lanes < n


def test_blocks_of_common_tiles():
    assert (blocking(128, 128, 16, 32).rows, blocking(128, 128, 16, 32).vectors) == (13, 2)
    assert blocking(64, 128, 8, 16).vectors == 2
