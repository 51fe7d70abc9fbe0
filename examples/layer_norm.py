"""Layer normalisation over the last dimension, with scale and shift."""

from __future__ import annotations

import numpy as np

import tile_core as tile
import tile_core.language as T

EXAMPLE = {"layer_norm": {"M": 64, "N": 384}}


@tile.jit(out_idx=[-1])
def layer_norm(M, N, block_M=4, eps=1e-5, dtype="float32"):
    @T.prim_func
    def kernel(
        X: T.Tensor((M, N), dtype),
        gamma: T.Tensor((N,), "float32"),
        beta: T.Tensor((N,), "float32"),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x = T.alloc_fragment((block_M, N), "float32")
            square = T.alloc_fragment((block_M, N), "float32")
            scale = T.alloc_fragment((N,), "float32")
            shift = T.alloc_fragment((N,), "float32")
            mean = T.alloc_fragment((block_M,), "float32")
            var = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], x)
            T.copy(gamma, scale)
            T.copy(beta, shift)
            T.reduce_sum(x, mean, dim=1)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = x[i, j] - mean[i] / N
            for i, j in T.Parallel(block_M, N):
                square[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(square, var, dim=1)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = x[i, j] * T.rsqrt(var[i] / N + eps) * scale[j] + shift[j]
            T.copy(x, Y[bx * block_M, 0])

    return kernel


def reference(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    x = x.astype(np.float64)
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + eps) * gamma + beta


def main() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 384)).astype(np.float32)
    gamma, beta = rng.standard_normal((2, 384)).astype(np.float32)
    y = layer_norm(**EXAMPLE["layer_norm"])(x, gamma, beta)
    print("largest error", np.abs(y - reference(x, gamma, beta)).max())


if __name__ == "__main__":
    main()
