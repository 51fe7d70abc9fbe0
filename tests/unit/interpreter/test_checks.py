"""What the interpreter finds wrong in a kernel that runs, and what it shows."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import tile_core.language as T
from tile_core.errors import KernelError
from tile_core.interpreter import run
from tile_core.language.trace import PrimFunc


def fails(kernel: PrimFunc, *arguments: np.ndarray) -> str:
    with pytest.raises(KernelError) as caught:
        run(kernel.program, list(arguments))
    assert caught.value.span is not None
    assert caught.value.span.file == __file__
    return str(caught.value)


def test_index_out_of_bounds() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((4,))):
        with T.Kernel(5) as bx:
            C[bx] = 1.0

    message = fails(kernel, np.zeros(4, np.float32))
    assert "index 4 is out of range for dimension 0 of C, which has size 4" in message
    assert "in C[bx]" in message


def test_only_part_of_a_tile_is_written() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((8,))):
        with T.Kernel(1):
            s = T.alloc_shared((8,), "float32")
            T.fill(s[0:4], 1)
            T.copy(s, C)

    assert "s is read before all of the region is written" in fails(kernel, np.zeros(8, np.float32))


def test_tile_is_unknown_again_in_the_next_iteration() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((8,))):
        with T.Kernel(1):
            for i in T.serial(2):
                s = T.alloc_shared((8,), "float32")
                if i == 0:
                    T.fill(s, 1)
                T.copy(s, C)

    assert "is read before all of the region is written" in fails(kernel, np.zeros(8, np.float32))


def test_two_iterations_write_one_element() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((8,))):
        with T.Kernel(1):
            for i in T.Parallel(8):
                C[i // 2] = i

    assert "write different values to one element of C" in fails(kernel, np.zeros(8, np.float32))


def test_iterations_that_depend_on_each_other() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((8,))):
        with T.Kernel(1):
            for i in T.Parallel(7):
                C[i] = C[i + 1]

    assert "iterations of T.Parallel depend on each other through C" in fails(kernel, np.zeros(8, np.float32))


def test_division_by_zero() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4,), "int32"), C: T.Tensor((4,), "int32")):
        with T.Kernel(4) as bx:
            C[bx] = 8 // A[bx]

    assert "division by zero" in fails(kernel, np.array([1, 2, 0, 4], np.int32), np.zeros(4, np.int32))


def test_barrier_that_some_threads_miss() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((4,))):
        with T.Kernel(1, threads=4):
            tx = T.get_thread_binding()
            if tx < 2:
                T.sync_threads()
            C[tx] = 1.0

    assert "only some threads reach T.sync_threads" in fails(kernel, np.zeros(4, np.float32))


def test_tile_op_that_some_threads_miss() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((4,))):
        with T.Kernel(1, threads=4):
            tx = T.get_thread_binding()
            s = T.alloc_shared((4,), "float32")
            if tx < 2:
                T.fill(s, 1)
            C[tx] = 1.0

    assert "only some threads of the block reach a step of the whole block" in fails(
        kernel, np.zeros(4, np.float32)
    )


def test_assertion() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4,))):
        with T.Kernel(4) as bx:
            T.device_assert(A[bx] > 0, "all positive")

    assert "assertion failed: all positive" in fails(kernel, np.array([1, 1, -1, 1], np.float32))


def test_assumption_is_checked() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4,))):
        with T.Kernel(4) as bx:
            T.assume(bx < 3)
            A[bx] = 1.0

    assert "T.assume" in fails(kernel, np.zeros(4, np.float32))


def test_print(capsys: pytest.CaptureFixture[str]) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((3,))):
        with T.Kernel(1):
            print("first", A[0], A[1])
            T.print(A, "all")
            T.print(A[1:3])
            T.print(msg="here")

    run(kernel.program, [np.array([1, 2, 3], np.float32)])
    assert capsys.readouterr().out.splitlines() == ["first 1.0 2.0", "all [1. 2. 3.]", "[2. 3.]", "here"]


def test_breakpoint_shows_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((3,))):
        with T.Kernel(1) as bx:
            s = T.alloc_shared((2,), "float32")
            T.fill(s, 7)
            breakpoint()
            A[bx] = s[0]

    seen: dict[str, object] = {}

    def hook() -> None:
        seen.update(sys._getframe(1).f_locals["here"])

    monkeypatch.setattr(sys, "breakpointhook", hook)
    run(kernel.program, [np.zeros(3, np.float32)])
    assert np.array_equal(seen["s"], [7, 7])  # type: ignore[arg-type]
    assert "A" in seen
    assert "bx" in seen


def test_an_open_program_is_not_run() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((8,)), C: T.Tensor((8,))):
        s = T.alloc_shared((8,), "float32")
        T.copy(A, s)
        T.copy(s, C)

    with pytest.raises(KernelError, match=r"has no T\.Kernel"):
        run(kernel.program, [np.zeros(8, np.float32), np.zeros(8, np.float32)])


def test_many_to_one_is_not_hidden_by_equal_values() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((8,))):
        with T.Kernel(1):
            for _i in T.Parallel(8):
                C[0] = 3.0

    c = np.zeros(8, np.float32)
    run(kernel.program, [c])
    assert c[0] == 3
