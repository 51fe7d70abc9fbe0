"""Boxes of the copy engine: together they are the tile, and each begins where the engine can write."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest

import tile_core.language as T
from tile_core.hardware import Target
from tile_core.inference.bulk import BoxCopy
from tile_core.inference.plan import TilePlan
from tile_core.registry import registry
from tile_core.runtime.pipeline import make_plan

PLACE = 128  # bytes; PTX ISA, cp.async.bulk.tensor: alignment in shared memory


def product(rows: int, columns: int, depth: int, dtype: str) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((4 * rows, 256), dtype),
        B: T.Tensor((256, 4 * columns), dtype),
        C: T.Tensor((rows, columns)),
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((rows, depth), dtype)
            b = T.alloc_shared((depth, columns), dtype)
            c = T.alloc_fragment((rows, columns), "float32")
            T.clear(c)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0, k * depth], a)
                T.copy(B[k * depth, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    return main


def plan(*how: Any) -> TilePlan:
    target = Target.parse("cuda:sm_90a")
    return make_plan(product(*how).program, registry().get(target.backend).info(target))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("depth", [8, 11, 16, 24, 32, 40, 64])
@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (16, 32), (64, 96), (16, 104), (128, 16)])
def test_boxes(rows: int, columns: int, depth: int, dtype: str) -> None:
    found = plan(rows, columns, depth, dtype)
    sizes = {"copy0": rows * depth, "copy1": depth * columns}
    for name, copy in found.bulk.items():
        check(copy, sizes[name])


def check(copy: BoxCopy, size: int) -> None:
    bits, each = copy.tensor.dtype.bits, prod(copy.box)
    begins = sorted(p.at for p in copy.pieces)
    assert begins == list(range(0, size, each))
    assert not [at for at in begins if at * bits % (8 * PLACE)]


def test_a_tile_whose_second_box_would_begin_between_is_copied_by_threads() -> None:
    assert "copy1" not in plan(16, 32, 11, "float16").bulk
    assert "copy1" in plan(16, 32, 16, "float16").bulk
