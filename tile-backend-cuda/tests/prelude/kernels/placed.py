"""A product whose operands and sums lie anywhere: in tiles of each kind, whole or in part."""

from __future__ import annotations

from typing import Any

import tile_core.language as T


def _tile(place: str, shape: tuple[int, int], dtype: str) -> tuple[Any, Any]:
    """A tile, and the part of it that takes part in the product."""
    rows, columns = shape
    match place:
        case "shared":
            tile = T.alloc_shared(shape, dtype)
            return tile, tile
        case "fragment":
            tile = T.alloc_fragment(shape, dtype)
            return tile, tile
        case "slot":
            tile = T.alloc_shared((2, *shape), dtype)
            return tile, tile[1, :, :]
        case "window":
            tile = T.alloc_shared((rows + 3, columns + 16), dtype)
            return tile, tile[3 : 3 + rows, 16 : 16 + columns]
        case _:
            tile = T.alloc_fragment((2 * rows, columns), dtype)
            return tile, tile[rows : 2 * rows, 0:columns]


def placed(
    extents: tuple[int, int, int],
    types: tuple[str, str, str],
    places: tuple[str, str, str],
    threads: int,
    *,
    transpose_a: bool,
    transpose_b: bool,
    clear: bool,
) -> Any:
    """One product, twice if its sums are cleared first: operands and sums in tiles of each kind, whole or in part."""
    (m, n, k), (operand, total, result) = extents, types
    shape_a, shape_b = (k, m) if transpose_a else (m, k), (n, k) if transpose_b else (k, n)
    turned = {"transpose_A": transpose_a, "transpose_B": transpose_b}

    @T.prim_func
    def main(A: T.Tensor(shape_a, operand), B: T.Tensor(shape_b, operand), C: T.Tensor((m, n), result)):
        with T.Kernel(1, threads=threads):
            _, a = _tile(places[0], shape_a, operand)
            _, b = _tile(places[1], shape_b, operand)
            whole, c = _tile(places[2], (m, n), total)
            T.copy(A, a)
            T.copy(B, b)
            if clear:
                T.gemm(a, b, c, clear_accum=True, **turned)
            else:
                T.clear(whole)
                T.gemm(a, b, c, **turned)
                T.gemm(a, b, c, **turned)
            T.copy(c, C)

    return main
