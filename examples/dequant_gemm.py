"""Matrix product with 4-bit weights: two signed values in each byte, one scale for each group of K and column."""

from __future__ import annotations

import numpy as np

import tile_core as tile
import tile_core.language as T

EXAMPLE = {"dequant_gemm": {"M": 32, "N": 128, "K": 128}}


@T.macro
def signed4(byte, high):
    """The low or high four bits of a byte as a number from -8 to 7."""
    bits = (T.int32(byte) >> (high * 4)) & 15
    return (bits ^ 8) - 8


@tile.jit(out_idx=[-1])
def dequant_gemm(M, N, K, group=32, block_M=32, block_N=64, block_K=64, dtype="float16"):
    @T.prim_func
    def kernel(
        A: T.Tensor((M, K), dtype),
        packed: T.Tensor((T.ceildiv(K, 2), N), "uint8"),
        scales: T.Tensor((T.ceildiv(K, group), N), dtype),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            packed_shared = T.alloc_shared((block_K // 2, block_N), "uint8")
            scales_shared = T.alloc_shared((block_K // group, block_N), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            acc = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(acc)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(packed[ko * (block_K // 2), bx * block_N], packed_shared)
                T.copy(scales[ko * (block_K // group), bx * block_N], scales_shared)
                for k, j in T.Parallel(block_K, block_N):
                    value = signed4(packed_shared[k // 2, j], k % 2)
                    B_shared[k, j] = T.cast(value, dtype) * scales_shared[k // group, j]
                T.gemm(A_shared, B_shared, acc)
            T.copy(acc, C[by * block_M, bx * block_N])

    return kernel


def pack(weights: np.ndarray) -> np.ndarray:
    """Values from -8 to 7, (K, N), as bytes (K/2, N): even rows in the low bits."""
    if weights.shape[0] % 2:
        weights = np.vstack([weights, np.zeros((1, weights.shape[1]), weights.dtype)])
    bits = weights.astype(np.uint8) & 15
    return (bits[0::2] | (bits[1::2] << 4)).astype(np.uint8)


def reference(a: np.ndarray, weights: np.ndarray, scales: np.ndarray, group: int = 32) -> np.ndarray:
    full = np.repeat(scales.astype(np.float32), group, axis=0)[: weights.shape[0]]
    rounded = (weights.astype(np.float32) * full).astype(np.float16).astype(np.float32)
    return a.astype(np.float32) @ rounded


def main() -> None:
    rng = np.random.default_rng(0)
    sizes = EXAMPLE["dequant_gemm"]
    a = rng.standard_normal((sizes["M"], sizes["K"])).astype(np.float16)
    weights = rng.integers(-8, 8, (sizes["K"], sizes["N"]))
    scales = rng.uniform(0.5, 1.5, (sizes["K"] // 32, sizes["N"])).astype(np.float16)
    c = dequant_gemm(**sizes)(a, pack(weights), scales)
    print("largest error", np.abs(c - reference(a, weights, scales)).max())


if __name__ == "__main__":
    main()
