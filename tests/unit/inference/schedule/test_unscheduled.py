"""A pipelined loop in which nothing overlaps is said to be one, and why."""

from __future__ import annotations

from typing import Any

import pytest

import tile_core.language as T
from tile_core.hardware import Target
from tile_core.registry import registry
from tile_core.runtime.pipeline import make_plan

K, TILE = 512, 32


def product(kind: str, stages: int = 3) -> Any:
    """A product whose copies stand in a branch, or which reads a scalar from a shared tile, or that is plain."""

    @T.prim_func
    def kernel(
        A: T.Tensor((128, K), "float16"),
        B: T.Tensor((K, 128), "float16"),
        F: T.Tensor((K // TILE, TILE), "float32"),
        C: T.Tensor((128, 128), "float16"),
    ):
        with T.Kernel(1, threads=256) as _:
            a = T.alloc_shared((128, TILE), "float16")
            b = T.alloc_shared((TILE, 128), "float16")
            f = T.alloc_shared((TILE,), "float32")
            c = T.alloc_fragment((128, 128), "float32")
            T.clear(c)
            for k in T.Pipelined(K // TILE, num_stages=stages):
                if kind == "scalar":
                    T.copy(F[k, :], f)
                    last = f[TILE - 1]
                if kind == "branch":
                    if F[k, 0] > 0:
                        T.copy(A[0, k * TILE], a)
                        T.copy(B[k * TILE, 0], b)
                        T.gemm(a, b, c)
                else:
                    T.copy(A[0, k * TILE], a)
                    T.copy(B[k * TILE, 0], b)
                    T.gemm(a, b, c)
                if kind == "scalar":
                    for i, j in T.Parallel(128, 128):
                        c[i, j] = c[i, j] * last
            T.copy(c, C)

    return kernel


def told(kind: str, target: str, stages: int = 3) -> list[str]:
    backend = registry().get(target.partition(":")[0])
    plan = make_plan(product(kind, stages).program, backend.info(Target.parse(target)))
    return [n for n in plan.notes if "do not overlap" in n]


@pytest.mark.parametrize("target", ["cuda:sm_90a", "cuda:sm_80", "rocm:gfx942"])
@pytest.mark.parametrize(
    ("kind", "reason"), [("branch", "stand in a branch"), ("scalar", "last goes from"), ("plain", "")]
)
def test_reason(kind: str, reason: str, target: str) -> None:
    found = told(kind, target)
    assert len(found) == bool(reason)
    assert all("its 3 stages" in n and reason in n for n in found)


@pytest.mark.parametrize(("target", "stages"), [("cpu", 3), ("metal:apple9", 3), ("cuda:sm_90a", 1)])
def test_nothing_was_expected_to(target: str, stages: int) -> None:
    assert told("branch", target, stages) == []
