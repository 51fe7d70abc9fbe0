"""Loops whose copies run ahead, under the emulator: ends that cut a piece, trip counts from 0 on, starts and steps, tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from oracle import passes

import tile_core.language as T
from tile_backend_cuda.backend import CudaBackend
from tile_core.hardware import Target
from tile_core.testing import stages
from tile_core.testing.kernels import Case

pytest.importorskip("tile_backend_cuda.codegen")


def line(dtype: str) -> Any:
    """A tensor that ends anywhere."""
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n,), dtype), B: T.Tensor((320,), "float32")):
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((64,), dtype)
            for k in T.Pipelined(5, num_stages=3):
                T.copy(A[k * 64], a)
                for i in T.Parallel(64):
                    B[k * 64 + i] = a[i]

    return main


def rows(dtype: str) -> Any:
    """As many iterations as there are rows."""
    m = T.dynamic("m")

    @T.prim_func
    def main(A: T.Tensor((m, 64), dtype), B: T.Tensor((m, 64), "float32")):
        with T.Kernel(1, threads=64):
            a = T.alloc_shared((16, 64), dtype)
            for k in T.Pipelined(T.ceildiv(m, 16), num_stages=4):
                T.copy(A[k * 16, 0], a)
                for i, j in T.Parallel(16, 64):
                    if k * 16 + i < m:
                        B[k * 16 + i, j] = a[i, j]

    return main


def batch(dtype: str) -> Any:
    """A tile of a tensor with one more dimension, beyond the end of which the batch goes on."""

    @T.prim_func
    def main(A: T.Tensor((3, 40, 64), dtype), B: T.Tensor((3, 48, 64), "float32")):
        with T.Kernel(3, threads=64) as bx:
            a = T.alloc_shared((16, 64), dtype)
            for k in T.Pipelined(3, num_stages=2):
                T.copy(A[bx, k * 16 : k * 16 + 16, :], a)
                for i, j in T.Parallel(16, 64):
                    B[bx, k * 16 + i, j] = a[i, j]

    return main


def twice(dtype: str) -> Any:
    """A loop that starts where the block says, run twice by a loop around it, which reads the last slots before it fills them."""

    @T.prim_func
    def main(A: T.Tensor((160, 64), dtype), B: T.Tensor((160, 64), "float32")):
        with T.Kernel(2, threads=64) as bx:
            a = T.alloc_shared((16, 64), dtype)
            for k in T.serial(2):
                for q in T.Pipelined(bx * 2, bx * 2 + 3, num_stages=3):
                    T.copy(A[q * 16 + k * 80, 0], a)
                    for i, j in T.Parallel(16, 64):
                        B[q * 16 + k * 80 + i, j] = a[i, j] + k

    return main


def pages(dtype: str) -> Any:
    """Places from a table."""

    @T.prim_func
    def main(A: T.Tensor((128, 64), dtype), table: T.Tensor((6,), "int32"), B: T.Tensor((96, 64), "float32")):
        with T.Kernel(1, threads=64):
            a = T.alloc_shared((16, 64), dtype)
            for k in T.Pipelined(6, num_stages=2):
                T.copy(A[table[k] * 16, 0], a)
                for i, j in T.Parallel(16, 64):
                    B[k * 16 + i, j] = a[i, j]

    return main


RUNS: list[tuple[Callable[[str], Any], Mapping[str, int]]] = [
    *((line, {"n": n}) for n in (0, 1, 100, 133, 317, 320)),
    *((rows, {"m": m}) for m in (0, 1, 33, 48, 200)),
    (batch, {}),
    (twice, {}),
    (pages, {}),
]


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
@pytest.mark.parametrize(("make", "dims"), RUNS)
def test_copies(make: Callable[[str], Any], dims: Mapping[str, int], dtype: str, emulator: None) -> None:
    case = Case(f"{make.__name__}-{dtype}", lambda: make(dtype), frozenset((dtype,)), dims, low=0, high=8)
    backend = CudaBackend()
    source = stages.emit(case, backend, backend.info(Target("cuda", "sm_80")))
    assert "cp_async_16" in source.text
    (aligned,) = {p.alignment for p in source.launch.params if p.name == "A"}
    assert aligned == 16
    passes(case, source)
