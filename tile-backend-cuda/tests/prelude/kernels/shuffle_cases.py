"""Kernels whose fragments change their layout within a warp, for the emulator; and scans."""

from __future__ import annotations

from typing import Any

import tile_core.language as T
from tile_core.layout.layout import Layout


def relaid(have: Layout, need: Layout, threads: int, dtype: str) -> Any:
    """A tile that is read in one layout and written in another one."""
    shape = have.shape

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype)):
        with T.Kernel(1, threads=threads):
            f = T.alloc_fragment(shape, dtype)
            g = T.alloc_fragment(shape, dtype)
            T.annotate_layout({f: have, g: need})
            T.copy(A, f)
            T.copy(f, g)
            T.copy(g, B)

    return main


def updated(have: Layout, need: Layout, threads: int, dtype: str) -> Any:
    """A part of the elements of one layout is changed by those of another one."""
    shape = have.shape

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype)):
        with T.Kernel(1, threads=threads):
            f = T.alloc_fragment(shape, dtype)
            g = T.alloc_fragment(shape, dtype)
            T.annotate_layout({f: have, g: need})
            T.copy(A, f)
            T.copy(B, g)
            for i, j in T.Parallel(*shape):
                if i < j:
                    g[i, j] = f[i, j] + g[i, j]
            T.copy(g, B)

    return main


def scanned(
    shape: tuple[int, int], threads: int, dtype: str, axis: int, reverse: bool, place: str, kind: str = "sum"
) -> Any:
    """A scan along either axis, of a tile in shared memory or in registers."""
    scan = {"sum": T.cumsum, "max": T.cummax}[kind]

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype)):
        with T.Kernel(1, threads=threads):
            x = T.alloc_fragment(shape, dtype) if place == "fragment" else T.alloc_shared(shape, dtype)
            T.copy(A, x)
            scan(x, dim=axis, reverse=reverse)
            T.copy(x, B)

    return main
