"""Layouts of shared-memory tiles that belong to no vendor: rows, swizzled spans, panels and core matrices."""

from __future__ import annotations

from .digits import mem, tile
from .f2 import BitMap, xor_swizzle
from .layout import Iter, Layout, Shape

CHUNK_BITS = 128  # swizzles move chunks of 16 bytes
XORED = {0: 0, 32: 1, 64: 2, 128: 3}  # span in bytes -> chunk bits that are XORed


def row_major(shape: Shape, stride: int | None = None) -> Layout:
    """C order; ``stride`` is the distance of rows in elements when the last dimension is padded."""
    iters: list[Iter] = []
    place = 1
    for k, extent in enumerate(reversed(shape)):
        iters.append(mem(extent, place))
        place = stride if stride and k == 0 else place * extent
    return Layout(shape, tuple(reversed(iters)))


def span_swizzle(span: int, bits: int) -> BitMap:
    """XOR of 16-byte chunks within rows of ``span`` bytes (0, 32, 64 or 128; 0 is none), for elements of ``bits``.

    Chunk bits are XORed with the number of the 128-byte line, so rows of one column fall into different banks.
    """
    count = XORED[span]
    chunk = (CHUNK_BITS // bits).bit_length() - 1
    return xor_swizzle(count, chunk, 3) if count else BitMap()


def panels(shape: tuple[int, int], width: int, swizzle: BitMap) -> Layout:
    """Columns in panels of ``width`` elements, each panel contiguous (176 = 11 panels of 16).

    Raises:
        ValueError: ``width`` does not divide the columns.
    """
    rows, columns = shape
    if columns % width:
        raise ValueError(f"{columns} columns are not a multiple of panels of {width}")
    return tile(
        shape, (mem(rows, width),), (mem(columns // width, rows * width), mem(width, 1))
    ).with_swizzle(swizzle)


def span_tile(shape: tuple[int, int], span: int, bits: int) -> Layout:
    """Rows of ``span`` bytes, swizzled; a wider tile is a row of panels, each of them one box of a bulk copy.

    Raises:
        ValueError: a row is not a whole number of spans.
    """
    return panels(shape, span * 8 // bits, span_swizzle(span, bits))


def core_matrices(shape: tuple[int, int], bits: int) -> Layout:
    """Cores of 8 rows by 16 bytes, each contiguous, cores of a row of cores following each other; no swizzle."""
    rows, columns = shape
    width = CHUNK_BITS // bits
    return tile(
        shape, (mem(rows // 8, 8 * columns), mem(8, width)), (mem(columns // width, 8 * width), mem(width, 1))
    )
