"""Products of bytes where there is no matrix instruction for them, under the emulator."""

from __future__ import annotations

import pytest
from generated import Product, findings

PRODUCTS = [
    Product(types, arch, extents, block, threads, transpose_a=turned[0], transpose_b=turned[1])
    for types, arch in (("signed", "sm_70"), ("unsigned", "sm_70"), ("signed", "sm_103a"))
    for extents, block, threads, turned in (
        ((32, 32, 64), (16, 16, 32), 32, (False, True)),
        ((33, 20, 70), (16, 16, 32), 64, (False, False)),
        ((16, 24, 33), (16, 24, 33), 96, (True, False)),
    )
]


@pytest.mark.parametrize("mode", ["late", "random"])
@pytest.mark.parametrize("product", PRODUCTS, ids=str)
def test_products(product: Product, mode: str, emulator: None):
    source = product.source()
    assert f"dot4_{product.types[0]}8(" in source.text.split('extern "C"', 1)[1]
    assert not findings(product, mode, source)


def test_words_are_read_where_they_lie(emulator: None):
    """Both operands contiguous along k: no byte is read by itself."""
    body = PRODUCTS[0].source().text.split('extern "C"', 1)[1]
    assert "word" not in body
