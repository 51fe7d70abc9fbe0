"""Whether each element of a result is written by one block, once: what is proved, and what must not be."""

from __future__ import annotations

from typing import Any

import pytest

import tile_core.language as T
from tile_core.inference.complete import complete
from tile_core.verification.outputs import ATOMIC, CONDITION, covered

M, N = 100, 64


def copied(rows: Any, start: Any, columns: int = 64, blocks: Any = None, m: Any = M) -> Any:
    """Blocks of ``rows`` rows, each from ``start(block)`` on."""

    @T.prim_func
    def kernel(A: T.Tensor((m, N), "float32"), C: T.Tensor((m, N), "float32")):
        with T.Kernel(T.ceildiv(m, rows) if blocks is None else blocks, threads=128) as b:
            tile = T.alloc_fragment((rows, columns), "float32")
            T.copy(A[start(b), 0], tile)
            T.copy(tile, C[start(b), 0])

    return kernel


def in_a_branch() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((M, N), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(M, threads=128) as b:
            tile = T.alloc_fragment((1, N), "float32")
            T.copy(A[b, 0], tile)
            if b != 7:
                T.copy(tile, C[b, 0])

    return kernel


def elements(condition: Any) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((M,), "float32"), C: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, 32), threads=32) as b:
            for i in T.Parallel(32):
                j = b * 32 + i
                if condition(j):
                    C[j] = A[j]

    return kernel


def every_block() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((M, N), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(M, 2, threads=128) as (b, _other):
            tile = T.alloc_fragment((1, N), "float32")
            T.copy(A[b, 0], tile)
            T.copy(tile, C[b, 0])

    return kernel


def added() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((M, N), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(M, threads=128) as b:
            for j in T.Parallel(N):
                T.atomic_add(C[b, j], A[b, j])

    return kernel


def dynamic(rows: int, blocks: int) -> Any:
    m = T.dynamic("m")
    return copied(rows, lambda b: b * rows, blocks=T.ceildiv(m, blocks), m=m)


def answer(kernel: Any) -> str:
    program = complete(kernel.program).program
    return covered(program, next(p.value for p in program.params if p.name == "C"))


@pytest.mark.parametrize(
    "kernel",
    [
        copied(16, lambda b: b * 16),
        copied(1, lambda b: b),
        copied(100, lambda b: 0, blocks=1),
        elements(lambda j: j < M),
        dynamic(16, 16),
    ],
)
def test_proved(kernel: Any) -> None:
    assert answer(kernel) == ""


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (copied(16, lambda b: b * 8), "tiles of 16 begin at every 8"),
        (copied(16, lambda b: b * 32), "tiles of 16 begin at every 32"),
        (copied(16, lambda b: b * 16 + 1), "has no number"),
        (copied(16, lambda b: b * 16, blocks=6), "6 tiles of 16 need not be 100 elements"),
        (copied(16, lambda b: b * 16, blocks=8), "8 tiles of 16 need not be 100 elements"),
        (copied(16, lambda b: b * 16, columns=32), "begins at 0 has no number"),
        (dynamic(16, 32), "need not be m elements"),
        (in_a_branch(), CONDITION),
        (elements(lambda j: j < M - 1), CONDITION),
        (elements(lambda j: j > 3), CONDITION),
        (every_block(), "blocks that differ in _other write the same"),
        (added(), ATOMIC),
    ],
)
def test_not_proved(kernel: Any, reason: str) -> None:
    assert reason in answer(kernel)
