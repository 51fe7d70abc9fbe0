"""Pipelined loops beside other uses of their tiles, sums and tensors: one kernel each, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tile_core.language as T

HALF = "float16"
ROWS, COLUMNS, DEPTH, STEP = 192, 128, 192, 64
COUNTS = (2, 0, 1, 1, 2, 3, 0, 1)  # values of the table that the kernels read


@T.macro
def load(A, B, a, b, by, bx, k):
    T.copy(A[by * a.shape[0], k * STEP], a)
    T.copy(B[bx * b.shape[0], k * STEP], b)


@T.macro
def two_products(A, B, E, P, a, b, c, by, bx):
    d = T.alloc_shared(b.shape, HALF)
    T.clear(c)
    for k in T.Pipelined(3, num_stages=3):
        load(A, B, a, b, by, bx, k)
        T.copy(B[0, k * STEP], d)
        T.gemm(a, b, c, transpose_B=True)
        T.gemm(a, d, c, transpose_B=True)


@T.macro
def filled_after_clear(A, B, E, P, a, b, c, by, bx):
    T.clear(c)
    T.fill(c, 3)
    for k in T.Pipelined(3, num_stages=3):
        load(A, B, a, b, by, bx, k)
        T.gemm(a, b, c, transpose_B=True)


@T.macro
def cleared_again(A, B, E, P, a, b, c, by, bx):
    T.clear(c)
    for k in T.Pipelined(3, num_stages=3):
        load(A, B, a, b, by, bx, k)
        T.gemm(a, b, c, transpose_B=True)
    T.copy(c, P[by * a.shape[0], bx * b.shape[0]])
    T.clear(c)
    for i, j in T.Parallel(*c.shape):
        c[i, j] = c[i, j] + 1


@T.macro
def tile_read_after_loop(A, B, E, P, a, b, c, by, bx):
    T.clear(c)
    for k in T.Pipelined(3, num_stages=3):
        load(A, B, a, b, by, bx, k)
        T.gemm(a, b, c, transpose_B=True)
    for i, j in T.Parallel(*c.shape):
        c[i, j] += a[i, j % STEP]


@T.macro
def tile_filled_again(A, B, E, P, a, b, c, by, bx):
    T.clear(c)
    for k in T.Pipelined(3, num_stages=3):
        load(A, B, a, b, by, bx, k)
        T.gemm(a, b, c, transpose_B=True)
    T.copy(A[by * a.shape[0], 0], a)
    T.gemm(a, b, c, transpose_B=True)


@T.macro
def tensor_read_after_store(A, B, E, P, a, b, c, by, bx):
    T.clear(c)
    for k in T.Pipelined(3, num_stages=3):
        load(A, B, a, b, by, bx, k)
        T.gemm(a, b, c, transpose_B=True)
    T.copy(c, P[by * a.shape[0], bx * b.shape[0]])
    for i, j in T.Parallel(*c.shape):
        c[i, j] *= 2
    T.copy(c, P[by * a.shape[0], bx * b.shape[0]])
    for i, j in T.Parallel(*c.shape):
        c[i, j] += P[by * a.shape[0] + i, bx * b.shape[0] + j]


@T.macro
def stored_in_each_iteration(A, B, E, P, a, b, c, by, bx):
    T.clear(c)
    for k in T.Pipelined(3, num_stages=3):
        load(A, B, a, b, by, bx, k)
        T.gemm(a, b, c, transpose_B=True)
        T.copy(c, P[by * a.shape[0], bx * b.shape[0]])


@T.macro
def stored_in_one_of_two_branches(A, B, E, P, a, b, c, by, bx):
    T.clear(c)
    for k in T.Pipelined(3, num_stages=3):
        load(A, B, a, b, by, bx, k)
        T.gemm(a, b, c, transpose_B=True)
    if E[by] > 0:
        T.copy(c, P[by * a.shape[0], bx * b.shape[0]])
    else:
        for i, j in T.Parallel(*c.shape):
            P[by * a.shape[0] + i, bx * b.shape[0] + j] = c[i, j] + 1


@T.macro
def product_of_a_product(A, B, E, P, a, b, c, by, bx):
    """The last products of one tile of the grid must be over when the next tile's copies come."""
    s = T.alloc_fragment(c.shape, "float32")
    p = T.alloc_fragment(c.shape, HALF)
    d = T.alloc_shared((b.shape[0], b.shape[0]), HALF)
    T.clear(c)
    for k in T.Pipelined(3, num_stages=3):
        load(A, B, a, b, by, bx, k)
        T.clear(s)
        T.gemm(a, b, s, transpose_B=True)
        for i, j in T.Parallel(*c.shape):
            p[i, j] = T.min(T.max(s[i, j], -3), 3)
        T.copy(B[0 : b.shape[0], 0 : b.shape[0]], d)
        T.gemm(p, d, c)


@T.macro
def counted_by_a_table(A, B, E, P, a, b, c, by, bx):
    c2 = T.alloc_fragment(c.shape, "float32")
    T.clear(c)
    T.clear(c2)
    for k in T.Pipelined(E[by], num_stages=3):
        load(A, B, a, b, by, bx, k)
        T.gemm(a, b, c, transpose_B=True)
        T.gemm(a, b, c2, transpose_B=True)
    T.copy(c2, P[by * a.shape[0], bx * b.shape[0]])


BODIES: tuple[Any, ...] = (
    two_products,
    filled_after_clear,
    cleared_again,
    tile_read_after_loop,
    tile_filled_again,
    tensor_read_after_store,
    stored_in_each_iteration,
    stored_in_one_of_two_branches,
    product_of_a_product,
    counted_by_a_table,
)


def kernel(body: Any, block: tuple[int, int] = (64, 64), threads: int = 128) -> Callable[[], Any]:
    """A kernel around one body: tiles of ``block`` of A B^T, results in O and P."""
    bm, bn = block

    def make() -> Any:
        @T.prim_func
        def main(
            A: T.Tensor((ROWS, DEPTH), HALF),
            B: T.Tensor((COLUMNS, DEPTH), HALF),
            E: T.Tensor((len(COUNTS),), "int32"),
            O: T.Tensor((ROWS, COLUMNS), "float32"),
            P: T.Tensor((ROWS, COLUMNS), "float32"),
        ):
            with T.Kernel(T.ceildiv(COLUMNS, bn), T.ceildiv(ROWS, bm), threads=threads) as (bx, by):
                a = T.alloc_shared((bm, STEP), HALF)
                b = T.alloc_shared((bn, STEP), HALF)
                c = T.alloc_fragment((bm, bn), "float32")
                body(A, B, E, P, a, b, c, by, bx)
                T.copy(c, O[by * bm, bx * bn])

        return main

    return make
