"""The last tile of a tensor reaches beyond it, also where its number is a constant: the rest reads as zero and is not written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.hardware import Target
from tile_core.testing.emulated import emulated


@tile.jit(out_idx=[-1])
def doubled(batch, rows, columns, block=32):
    """``bz % tiles`` is 0, a constant, if there is one tile."""
    tiles = T.ceildiv(rows, block)

    @T.prim_func
    def kernel(
        x: T.Tensor((batch, rows, columns), "float32"), out: T.Tensor((batch, rows, columns), "float32")
    ):
        with T.Kernel(batch * tiles, threads=128) as bz:
            b, row = bz // tiles, bz % tiles * block
            part = T.alloc_shared((block, columns), "float32")
            for _ in T.Pipelined(1, num_stages=2):
                T.copy(x[b, row : row + block, :], part)
                for i, j in T.Parallel(block, columns):
                    part[i, j] *= 2
                T.copy(part, out[b, row : row + block, :])

    return kernel


@pytest.mark.parametrize(
    "target", ["cpu", "interpreter", "cuda:sm_90a", "cuda:sm_80", "rocm:gfx942", "metal:apple9"]
)
@pytest.mark.parametrize("rows", [1, 17, 32, 33])
def test_tail(rows: int, target: str) -> None:
    x = np.random.default_rng(rows).standard_normal((3, rows, 20)).astype(np.float32)
    kernel: Any = doubled(3, rows, 20)
    if ":" in target:
        (got,) = emulated(kernel.for_target(Target.parse(target)), [x], {}, "random")
    else:
        with tile.target(target):
            got = kernel(x)
    np.testing.assert_array_equal(got, 2 * x)
