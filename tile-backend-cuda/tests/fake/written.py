"""A kernel with a source written by hand, and a code generator that gives it."""

from __future__ import annotations

from typing import Any

import torch

import tile_core.language as T
from tile_core.backend import Source
from tile_core.signature import launch_spec

TEXT = """extern "C" __global__ void __launch_bounds__(128) add(const float* A, const float* B, float* C, int N) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < N) C[i] = A[i] + B[i];
}
"""

N = T.dynamic("N")


@T.prim_func
def add(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
        for i in T.Parallel(128):
            C[bx * 128 + i] = A[bx * 128 + i] + B[bx * 128 + i]


class Written:
    """Stands for lowering and code generation: the source is written by hand."""

    def legalize(self, plan: Any) -> Any:
        return plan

    def passes(self) -> tuple[()]:
        return ()

    def emit(self, plan: Any) -> Source:
        return Source(TEXT, "cuda", ".cu", launch_spec(plan.program, ["add"]))


def tensors(n: int = 256) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return torch.randn(n), torch.randn(n), torch.zeros(n)
