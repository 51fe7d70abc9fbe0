"""Whether each element of a result is written by one block, once: what is proved, and what must not be."""

from __future__ import annotations

from typing import Any

import pytest

import tile_core.language as T
from tile_core.inference.complete import complete
from tile_core.verification import outputs
from tile_core.verification.outputs import ALL, ATOMIC, CONDITION, SOME, Covered, covered

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


def packed(batch: int, told: bool) -> Any:
    """Rows of sequence b are those from starts[b] up to starts[b + 1]."""

    @T.prim_func
    def kernel(
        A: T.Tensor((M, N), "float32"),
        starts: T.Tensor((batch + 1,), "int32"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(4, batch, threads=128) as (bx, b):
            if told:
                T.assume(starts[b] <= starts[b + 1])
            first = starts[b] + bx * 16
            left = starts[b + 1] - first
            for i, j in T.Parallel(16, N):
                if i < left:
                    C[first + i, j] = A[first + i, j]

    return kernel


def answer(kernel: Any) -> Covered:
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
def test_all_are_written(kernel: Any) -> None:
    assert answer(kernel) == Covered(how=ALL)


@pytest.mark.parametrize(
    "kernel",
    [
        copied(16, lambda b: b * 32),
        copied(16, lambda b: b * 16 + 1),
        copied(16, lambda b: 96 - b * 16),
        copied(16, lambda b: b * 16, blocks=6),
        copied(16, lambda b: b * 16, blocks=8),
        copied(16, lambda b: b * 16, columns=32),
        dynamic(16, 32),
        in_a_branch(),
        elements(lambda j: j < M - 1),
        elements(lambda j: j > 3),
        packed(3, told=True),
        packed(2, told=False),  # what two neighbours share is one number
    ],
)
def test_none_by_two_blocks(kernel: Any) -> None:
    assert answer(kernel) == Covered(how=SOME)


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (copied(16, lambda b: b * 8), "tiles of 16 begin at every 8"),
        (copied(16, lambda b: 96 - b * 15), "has no number"),
        (every_block(), "blocks that differ in _other write the same"),
        (packed(3, told=False), CONDITION),
        (added(), ATOMIC),
    ],
)
def test_not_proved(kernel: Any, reason: str) -> None:
    assert reason in answer(kernel).missing


@pytest.mark.parametrize(("rows", "expected"), [(32, True), (8, False)])
def test_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch, rows: int, expected: bool) -> None:
    """As where another version of the solver's library is loaded."""
    monkeypatch.setattr(outputs, "usable", lambda: False)
    found = answer(copied(16, lambda b: b * rows))
    assert (found == Covered(how=SOME)) is expected
    assert (found.clash is None) is expected
