"""Ascend's cube unit as data: the fractal layouts of its buffers and the shapes it multiplies.

A fractal is 512 bytes: 16 x C0 elements, C0 = 32 bytes. L1 keeps zN (also called NZ), L0A zZ, L0B nZ, L0C zN of 16 x 16.
The unit is not SIMT: one thread of control starts an instruction on whole tiles, so atoms have one thread.
"""

from __future__ import annotations

from tile_core.hardware import Atom
from tile_core.layout.digits import mem, tile
from tile_core.layout.layout import Layout

SOURCE = "Ascend C API reference, Mmad and LoadData; fractal orders for other widths than 16 bit from secondary sources"
FRACTAL_ROWS, C0_BITS = 16, 256
ORDERS = ("zN", "zZ", "nZ")


def fractal(shape: tuple[int, int], bits: int, order: str) -> Layout:
    """A tile of whole fractals. First letter of ``order``: inside a fractal; second: among fractals; z is by rows.

    Raises:
        ValueError: ``order`` is not one of ``ORDERS``, or the fractals do not divide ``shape``.
    """
    rows, columns = shape
    c0 = C0_BITS // bits
    height, width = (FRACTAL_ROWS, c0) if order[0] == "z" else (c0, FRACTAL_ROWS)
    if order not in ORDERS or rows % height or columns % width:
        raise ValueError(
            f"{shape} is not made of {height} x {width} fractals in one of the orders {ORDERS}, got {order}"
        )
    return blocked(shape, (height, width), order)


def blocked(shape: tuple[int, int], block: tuple[int, int], order: str) -> Layout:
    """``fractal`` with blocks of any size."""
    height, width = block
    down, across = shape[0] // height, shape[1] // width
    size = height * width
    inner = (width, 1) if order[0] == "z" else (1, height)
    outer = (across * size, size) if order[1] == "Z" else (size, down * size)
    return tile(
        shape, (mem(down, outer[0]), mem(height, inner[0])), (mem(across, outer[1]), mem(width, inner[1]))
    )


def l0c(n: int) -> Layout:
    """16 rows of the accumulator buffer: 16 x 16 blocks whatever the type."""
    return blocked((16, n), (16, 16), "zN")


def cube(a: str, c: str, k: int, rate: int) -> Atom:
    """One step of the cube unit: 16 x 16 x ``k``, operands of type ``a`` from L0A and L0B."""
    name = f"mmad.16x16x{k}.{c}.{a}"
    return Atom(
        name, (16, 16, k), 1, (a, a, c), None, None, l0c, rate, shared_a=True, engine="cube", source=SOURCE
    )


# rates: one step a clock and core
ATOMS = (
    cube("float16", "float32", 16, 8192),
    cube("bfloat16", "float32", 16, 8192),
    cube("int8", "int32", 32, 16384),
    cube("float32", "float32", 8, 2048),
)
