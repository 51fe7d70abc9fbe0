"""Products of parts of tiles in shared memory: where the matrix unit reads them by itself, and that it reads the right ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.hardware import Target
from tile_core.testing.emulated import emulated

BOTH = slice(None)


@tile.jit(out_idx=[-1])
def product(a: tuple[slice, slice], b: tuple[slice, slice], transposed: bool = False) -> Any:
    """The product of parts of two tiles of 128 x 256: A (64, k), and B (k, 64) or (64, k)."""

    @T.prim_func
    def kernel(
        A: T.Tensor((128, 256), "float16"),
        B: T.Tensor((128, 256), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128):
            A_shared = T.alloc_shared((128, 256), "float16")
            B_shared = T.alloc_shared((128, 256), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            T.copy(A, A_shared)
            T.copy(B, B_shared)
            T.clear(acc)
            T.gemm(A_shared[a[0], a[1]], B_shared[b[0], b[1]], acc, transpose_B=transposed)
            T.copy(acc, C)

    return kernel


@tile.jit(out_idx=[-1])
def turns() -> Any:
    """The sum of the products of four parts, taken one after the other."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 256), "float16"), B: T.Tensor((256, 64), "float16"), C: T.Tensor((64, 64), "float32")
    ):
        with T.Kernel(1, threads=128):
            A_shared = T.alloc_shared((64, 256), "float16")
            B_shared = T.alloc_shared((4, 64, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            T.copy(A, A_shared)
            for k in T.serial(4):
                T.copy(B[k * 64 : (k + 1) * 64, :], B_shared[k, :, :])
            T.clear(acc)
            for k in T.serial(4):
                T.gemm(A_shared[:, k * 64 : (k + 1) * 64], B_shared[k, :, :], acc)
            T.copy(acc, C)

    return kernel


def test_a_part_whose_place_is_not_known_is_read_by_the_threads() -> None:
    """By matrix instructions of a warp, not by single multiplications."""
    rng = np.random.default_rng(0)
    x, y = (
        rng.standard_normal((64, 256)).astype(np.float16),
        rng.standard_normal((256, 64)).astype(np.float16),
    )
    kernel = turns().for_target(Target.parse("cuda:sm_90a"))
    (got,) = emulated(kernel, [x, y], {})
    np.testing.assert_allclose(got, x.astype(np.float64) @ y.astype(np.float64), atol=1e-2)
    assert "mma_m16n8k16" in kernel.source.text.split('extern "C"')[-1]


UP, HALF = slice(0, 64), slice(0, 128)
PARTS = [  # of A, of B, whether B is stored the other way round, whether the matrix unit reads them by itself
    ((UP, HALF), (BOTH, slice(64, 128)), False, True),
    ((slice(64, 128), slice(128, 256)), (BOTH, slice(192, 256)), False, True),
    ((slice(8, 72), slice(64, 128)), (slice(64, 128), slice(128, 192)), True, True),
    ((UP, UP), (slice(16, 80), UP), False, True),
    ((UP, HALF), (BOTH, slice(32, 96)), False, True),  # with narrower panels, that a part may begin with one
    ((UP, slice(16, 80)), (UP, UP), True, True),
    ((UP, slice(8, 72)), (UP, UP), True, True),  # without panels
    ((UP, slice(4, 68)), (UP, UP), True, False),  # within 16 bytes
    ((slice(3, 67), UP), (UP, UP), True, False),  # within eight rows
]


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a", "sm_80"])
@pytest.mark.parametrize(("a", "b", "transposed", "alone"), PARTS)
def test_parts(arch: str, a: Any, b: Any, transposed: bool, alone: bool) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 128, 256)).astype(np.float16)
    kernel = product(a, b, transposed).for_target(Target.parse(f"cuda:{arch}"))
    (got,) = emulated(kernel, [x, y], {})
    right = y[b].astype(np.float64)
    np.testing.assert_allclose(got, x[a].astype(np.float64) @ (right.T if transposed else right), atol=1e-2)
    code = kernel.source.text.split('extern "C"')[-1]
    assert "mma" in code  # never by single multiplications
    if arch == "sm_90a":
        assert ("wgmma_m64n64k16_f32_f16" in code) == alone
