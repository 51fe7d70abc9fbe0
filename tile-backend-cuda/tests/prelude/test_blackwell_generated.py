"""Generated products in tensor memory under the emulator: shapes and types, and without one of their waits they must not pass."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mutations import mutants
from products import Product, compiled, faults

from tile_backend_cuda.prelude.table import MARK
from tile_core.backend import Source

pytest.importorskip("tile_backend_cuda.codegen")

MODES = ("late", "early", "random")
ARCH = {"arch": "sm_100a"}
SHAPES = [
    Product(256, 256, 128, (128, 128, 64), threads=128, **ARCH),
    Product(300, 260, 200, (256, 128, 64), **ARCH),
    Product(256, 512, 192, (128, 256, 64), b_t=False, **ARCH),
    Product(256, 256, 128, (128, 128, 64), threads=128, a_t=True, **ARCH),
    Product(200, 100, 300, (128, 64, 32), threads=128, symbolic=True, b_t=False, **ARCH),
    Product(131, 65, 264, (128, 64, 64), threads=128, b_t=False, cores=1, **ARCH),
    Product(256, 128, 128, (128, 64, 64), "float8_e4m3fn", threads=128, **ARCH),
    Product(256, 128, 128, (128, 64, 64), "int8", "int32", "int32", threads=128, **ARCH),
    Product(256, 128, 128, (128, 64, 32), "float32", out="float32", threads=128, **ARCH),
    Product(128, 64, 128, (128, 64, 64), threads=128, places=("shared", "shared", "fragment"), **ARCH),
]


@pytest.mark.parametrize("product", SHAPES, ids=str)
def test_shapes(product: Product, emulator: None) -> None:
    _, source = compiled(product)
    assert "tcgen05_mma" in source.text
    assert not any(faults(product, source, mode) for mode in MODES)


# copied boxes, several tiles for a block, results that the threads store; and sums that are put back between two products
LOOPED = Product(256, 188, 160, (128, 64, 32), threads=128, cores=2, **ARCH)
PUT_BACK = Product(128, 32, 32, (128, 32, 32), threads=128, places=("shared", "shared", "fragment"), **ARCH)


def broken(product: Product, only: str = "") -> list:
    _, source = compiled(product)
    prelude, _, kernel = source.text.partition(MARK)
    return [
        pytest.param(product, replace(source, text=prelude + MARK + text), id=f"{product}: {what}")
        for what, text in mutants(kernel)
        if not harmless(what) and what.startswith(only)
    ]


def harmless(what: str) -> bool:
    """What the emulator does by itself: its collectives keep warps together, and the oldest of several arrivals comes in time.

    (The last wait of a block for a slot of the ring; without one of those for the younger slots it is caught.)
    """
    return what.startswith("warp_sync") or "tokens[for0_done % 3]" in what


@pytest.mark.parametrize(("product", "source"), [*broken(LOOPED), *broken(PUT_BACK, "tcgen05")])
def test_caught(product: Product, source: Source, emulator: None) -> None:
    assert any(faults(product, source, mode) for mode in MODES)


def test_there_are_enough() -> None:
    assert len(broken(LOOPED)) >= 15 and len(broken(PUT_BACK, "tcgen05")) >= 6
