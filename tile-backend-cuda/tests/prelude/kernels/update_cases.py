"""Kernels that update tensors atomically, for the emulator: whole tiles, loops with conditions, several blocks in one place."""

from __future__ import annotations

from typing import Any

import tile_core.language as T


def tile_added(m: int, n: int, bm: int, bn: int, threads: int, blocks: int, dtype: str) -> Any:
    """``blocks`` blocks add a tile each to the same place; the tensor may end inside of it."""

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), C: T.Tensor((m, n), dtype)):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), blocks, threads=threads) as (bx, by, _):
            mine = T.alloc_fragment((bm, bn), dtype)
            T.copy(A[by * bm, bx * bn], mine)
            T.atomic_add(C[by * bm, bx * bn], mine)

    return main


def loop_added(
    n: int, block: int, threads: int, shift: int, dtype: str, order: str = "relaxed", short: int = 0
) -> Any:
    """A loop that updates all but the last ``short`` elements, ``shift`` elements further on."""

    @T.prim_func
    def main(A: T.Tensor((n,), dtype), C: T.Tensor((n + shift,), dtype)):
        with T.Kernel(T.ceildiv(n, block), 2, threads=threads) as (bx, _):
            for i in T.Parallel(block):
                if bx * block + i < n - short:
                    T.atomic_add(C[bx * block + i + shift], A[bx * block + i] * 2, memory_order=order)

    return main


def twice(n: int, threads: int, dtype: str) -> Any:
    """Two updates of one element in one iteration: neither may be lost."""

    @T.prim_func
    def main(A: T.Tensor((n,), dtype), C: T.Tensor((n,), dtype)):
        with T.Kernel(1, threads=threads):
            for i in T.Parallel(n):
                T.atomic_add(C[i], A[i])
                T.atomic_add(C[i], A[i])

    return main


def other(n: int, threads: int, op: str, dtype: str) -> Any:
    """Updates that have no vectors."""
    update = {"max": T.atomic_max, "min": T.atomic_min}[op]

    @T.prim_func
    def main(A: T.Tensor((n,), dtype), C: T.Tensor((n,), dtype)):
        with T.Kernel(1, threads=threads):
            for i in T.Parallel(n):
                update(C[i], A[i])

    return main
