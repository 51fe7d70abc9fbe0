"""Softmax over rows: one block holds some whole rows in a fragment."""

from __future__ import annotations

import numpy as np

import tile_core as tile
import tile_core.language as T

EXAMPLE = {"softmax": {"M": 128, "N": 512}}


@tile.jit(out_idx=[-1])
def softmax(M, N, block_M=8, dtype="float32"):
    @T.prim_func
    def kernel(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x = T.alloc_fragment((block_M, N), "float32")
            top = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], x)
            T.reduce_max(x, top, dim=1)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = T.exp(x[i, j] - top[i])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = x[i, j] / total[i]
            T.copy(x, Y[bx * block_M, 0])

    return kernel


def reference(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def main() -> None:
    x = np.random.default_rng(0).standard_normal((128, 512)).astype(np.float32)
    y = softmax(**EXAMPLE["softmax"])(x)
    print("largest error", np.abs(y - reference(x)).max())


if __name__ == "__main__":
    main()
