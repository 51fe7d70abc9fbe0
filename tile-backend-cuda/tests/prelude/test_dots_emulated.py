"""Products of bytes where there is no matrix instruction for them, under the emulator."""

from __future__ import annotations

import pytest
from products import Product, compiled, faults

LETTER = {"int8": "s", "uint8": "u"}
PRODUCTS = [
    Product(*extents, block, dtype, "int32", "int32", *turned, threads=threads, arch=arch)
    for dtype, arch in (("int8", "sm_70"), ("uint8", "sm_70"), ("int8", "sm_103a"))
    for extents, block, threads, turned in (
        ((32, 32, 64), (16, 16, 32), 32, (False, True)),
        ((33, 20, 70), (16, 16, 32), 64, (False, False)),
        ((16, 24, 33), (16, 24, 33), 96, (True, False)),
    )
]


@pytest.mark.parametrize("mode", ["late", "random"])
@pytest.mark.parametrize("p", PRODUCTS, ids=lambda p: f"{p}-{p.arch}")
def test_products(p: Product, mode: str, emulator: None):
    _, source = compiled(p)
    assert f"dot4_{LETTER[p.dtype]}8(" in source.text.split('extern "C"', 1)[1]
    assert not faults(p, source, mode)


def test_words_are_read_where_they_lie(emulator: None):
    """Both operands contiguous along k: no byte is read by itself."""
    body = compiled(PRODUCTS[0])[1].text.split('extern "C"', 1)[1]
    assert "word" not in body
