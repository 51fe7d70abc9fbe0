"""Matrix product with ReLU fused behind it, with grid and regions written out."""

from __future__ import annotations

import numpy as np

import tile_core as tile
import tile_core.language as T

EXAMPLE = {"gemm_relu": {"M": 256, "N": 256, "K": 256}}


@tile.jit(out_idx=[-1])
def gemm_relu(M, N, K, block_M=64, block_N=64, block_K=32, num_stages=3, dtype="float16", accum="float32"):
    @T.prim_func
    def kernel(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum)
            T.use_swizzle(panel_size=10)
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] = T.max(C_local[i, j], 0)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return kernel


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.maximum(a.astype(np.float32) @ b.astype(np.float32), 0)


def main() -> None:
    rng = np.random.default_rng(0)
    sizes = EXAMPLE["gemm_relu"]
    a = rng.standard_normal((sizes["M"], sizes["K"])).astype(np.float16)
    b = rng.standard_normal((sizes["K"], sizes["N"])).astype(np.float16)
    c = gemm_relu(**sizes)(a, b)
    print("largest error", np.abs(c - reference(a, b)).max())


if __name__ == "__main__":
    main()
