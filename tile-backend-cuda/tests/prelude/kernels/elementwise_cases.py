"""Kernels that move and combine elements, for shapes, types and numbers of threads that divide nothing; for the emulator."""

from __future__ import annotations

from typing import Any

import tile_core.language as T


def through_shared(m: int, n: int, bm: int, bn: int, threads: int, src: str, dst: str) -> Any:
    """Global to shared to fragment to shared to global, with a conversion."""

    @T.prim_func
    def main(A: T.Tensor((m, n), src), B: T.Tensor((m, n), dst)):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=threads) as (bx, by):
            tile = T.alloc_shared((bm, bn), src)
            mine = T.alloc_fragment((bm, bn), dst)
            out = T.alloc_shared((bm, bn), dst)
            T.copy(A[by * bm, bx * bn], tile)
            T.copy(tile, mine)
            for i, j in T.Parallel(bm, bn):
                mine[i, j] = mine[i, j] + 1
            T.copy(mine, out)
            T.copy(out, B[by * bm, bx * bn])

    return main


def tail(n: int, block: int, threads: int, dtype: str) -> Any:
    """One dimension whose end is no multiple of anything: vectors that may cross it; an update in place."""

    @T.prim_func
    def main(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, block), threads=threads) as bx:
            for i in T.Parallel(block):
                if bx * block + i < n:
                    B[bx * block + i] = B[bx * block + i] + A[bx * block + i]

    return main


def filled(m: int, n: int, threads: int, dtype: str) -> Any:
    """A fill of shared memory, and a loop that sets a part of it."""

    @T.prim_func
    def main(B: T.Tensor((m, n), dtype)):
        with T.Kernel(1, threads=threads):
            tile = T.alloc_shared((m, n), dtype)
            T.fill(tile, 3)
            for i, j in T.Parallel(m, n):
                if j < n // 2:
                    tile[i, j] = i + j
            T.copy(tile, B)

    return main


def reduced(m: int, n: int, threads: int, dtype: str, kind: str, dim: int, clear: bool = True) -> Any:
    """A reduction of a fragment along either dimension."""
    reduce = {"sum": T.reduce_sum, "max": T.reduce_max, "min": T.reduce_min, "absmax": T.reduce_absmax}[kind]
    size = n if dim == 0 else m

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((size,), dtype)):
        with T.Kernel(1, threads=threads):
            a = T.alloc_fragment((m, n), dtype)
            b = T.alloc_fragment((size,), dtype)
            T.copy(A, a)
            T.fill(b, 1)
            reduce(a, b, dim=dim, clear=clear)
            T.copy(b, B)

    return main


def normalised(m: int, n: int, threads: int, dtype: str) -> Any:
    """Two reductions whose results are used by the elements again: tiles in shared memory that could share bytes."""

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((m, n), dtype)):
        with T.Kernel(1, threads=threads):
            a = T.alloc_fragment((m, n), "float32")
            high = T.alloc_fragment((m,), "float32")
            total = T.alloc_fragment((m,), "float32")
            T.copy(A, a)
            T.reduce_max(a, high, dim=1)
            for i, j in T.Parallel(m, n):
                a[i, j] = T.exp(a[i, j] - high[i])
            T.reduce_sum(a, total, dim=1)
            for i, j in T.Parallel(m, n):
                a[i, j] = a[i, j] / total[i]
            T.copy(a, B)

    return main
