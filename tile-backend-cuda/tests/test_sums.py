"""Atomic sums of accumulators by the copy engine: right under each mode of the emulator, and wrong without any of their waits."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.hardware import Target
from tile_core.testing.emulated import emulated

MODES = ("early", "late", "random")


@tile.jit
def summed(
    M: int, N: int, K: int, policy: Any = T.GemmWarpPolicy.FullRow, threads: int = 256, ahead: bool = True
) -> Any:
    """``C += A B`` by blocks that each take some of K, and in each step of theirs add what they have.

    ``ahead``: whether copies run ahead, so that there is a thread for the sums besides.
    """
    block_M, block_N, block_K, splits = 128, 128, 64, 2

    @T.prim_func
    def kernel(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), splits, threads=threads) as (bx, by, bz):
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_K, block_N), "float16")
            acc = T.alloc_fragment((block_M, block_N), "float32")
            steps = K // (splits * block_K)
            for k in T.Pipelined(steps, num_stages=2) if ahead else T.serial(steps):
                at = (bz * (K // (splits * block_K)) + k) * block_K
                T.copy(A[by * block_M : (by + 1) * block_M, at : at + block_K], A_shared)
                T.copy(B[at : at + block_K, bx * block_N : (bx + 1) * block_N], B_shared)
                T.gemm(A_shared, B_shared, acc, clear_accum=True, policy=policy)
                T.atomic_add(C[by * block_M : (by + 1) * block_M, bx * block_N : (bx + 1) * block_N], acc)

    return kernel


def whole_numbers(M: int, N: int, K: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((M, K), (K, N)))
    return a, b, rng.integers(-9, 10, (M, N)).astype(np.float32)


def added_to(kernel: Any, M: int, N: int, K: int, mode: str) -> tuple[Any, Any]:
    """What the emulator makes of C, and what it should be."""
    a, b, c = whole_numbers(M, N, K)
    want = c + a.astype(np.float32) @ b.astype(np.float32)
    emulated(kernel, [a, b, c], {}, mode)
    return c, want


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize("policy", [T.GemmWarpPolicy.FullRow, T.GemmWarpPolicy.FullCol])
@pytest.mark.parametrize(
    ("M", "N", "K"), [(128, 128, 128), (256, 128, 512), (200, 132, 384), (1, 4, 256), (129, 260, 256)]
)
def test_right(M: int, N: int, K: int, policy: Any, ahead: bool, mode: str) -> None:
    kernel = summed(M, N, K, policy, ahead=ahead).for_target(Target.parse("cuda:sm_90a"))
    assert "tma_reduce_add_2d(" in kernel.source.text.split('extern "C"')[-1]
    got, want = added_to(kernel, M, N, K, mode)
    np.testing.assert_array_equal(got, want)


def test_rows_that_the_copy_engine_cannot_take_are_added_by_the_threads() -> None:
    kernel = summed(64, 130, 128).for_target(Target.parse("cuda:sm_90a"))
    assert "tma_reduce_add" not in kernel.source.text.split('extern "C"')[-1]
    got, want = added_to(kernel, 64, 130, 128, "random")
    np.testing.assert_array_equal(got, want)


def test_a_tensor_that_the_launch_reads_is_added_to_in_program_order() -> None:
    """The engine's sums come in no order with what threads do."""

    @tile.jit
    def read_back() -> Any:
        @T.prim_func
        def kernel(
            A: T.Tensor((64, 64), "float16"),
            C: T.Tensor((64, 64), "float32"),
            D: T.Tensor((64, 64), "float32"),
        ):
            with T.Kernel(1, threads=128):
                A_shared = T.alloc_shared((64, 64), "float16")
                acc = T.alloc_fragment((64, 64), "float32")
                T.copy(A, A_shared)
                T.gemm(A_shared, A_shared, acc, clear_accum=True)
                T.atomic_add(C, acc)
                T.copy(C, D)

        return kernel

    text = read_back().for_target(Target.parse("cuda:sm_90a")).source.text
    assert "tma_reduce_add" not in text.split('extern "C"')[-1]


AT, OWN = r"shared_address\(&tokens\[\d+\]\)", r"shared_address\(&tokens\[\(group \+ \d+\)\]\)"
STAGED = r"mbarrier_wait\(" + AT + r", .*\);"
TAKEN = r"mbarrier_wait\(" + OWN + r", .*\);"
TOLD = r"mbarrier_arrive\(" + OWN + r"\);"
LOST = [  # whether copies run ahead, and what is left out
    (True, r"bulk_wait_read<0>\(\);"),
    (True, r"fence_proxy_async_shared\(\);"),
    (True, TAKEN),
    (True, STAGED),
    (True, TOLD),
    (False, r"bulk_wait_read<0>\(\);"),
    (False, r"fence_proxy_async_shared\(\);"),
    (False, r"named_sync\(group \+ 2, 128\);"),
]


@pytest.mark.parametrize(("ahead", "gone"), LOST)
def test_each_wait_is_needed(ahead: bool, gone: str) -> None:
    """Without it some mode of the emulator finds a race, a block that never ends, or another result."""
    M, N, K = 128, 128, 512
    kernel = summed(M, N, K, ahead=ahead).for_target(Target.parse("cuda:sm_90a"))
    head, body = kernel.source.text.split('extern "C"', 1)
    lost = re.sub(rf"^ *{gone}$", "", body, flags=re.M)
    assert lost != body
    source = replace(kernel.source, text=head + 'extern "C"' + lost)
    emulator = kernel.backend.emulator(kernel.info)
    caught = False
    for mode in MODES:
        a, b, c = whole_numbers(M, N, K)
        want = c + a.astype(np.float32) @ b.astype(np.float32)
        reports = emulator.run(source, [a, b, c], {}, mode=mode)
        caught = caught or not all(r.clean for r in reports) or not np.array_equal(c, want)
    assert caught
