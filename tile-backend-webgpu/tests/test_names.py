"""Names of a program that generated statements use for themselves: an atomic update of a float declares some."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.hardware import Device


@tile.jit
def scattered(n):
    @T.prim_func
    def kernel(
        index: T.Tensor((n,), "int32"), added: T.Tensor((n,), "float32"), out: T.Tensor((n,), "float32")
    ):
        with T.Kernel(n, threads=32) as block:
            value = T.alloc_var("int32", index[block])
            place = T.alloc_var("int32", 1)
            old = T.alloc_var("int32", 1)
            seen = T.alloc_var("int32", 1)
            for i in T.Parallel(1):
                T.atomic_add(out[value * place * old * seen + i], added[value * place * old * seen])

    return kernel


@pytest.mark.parametrize("n", [1, 5])
def test_a_program_may_use_them(adapter: Device, n: int):
    out = np.zeros(n, np.float32)
    with tile.target("webgpu:lavapipe"):
        scattered(n)(np.zeros(n, np.int32), np.ones(n, np.float32), out)
    assert out[0] == n
