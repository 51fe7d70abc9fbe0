"""Matrix product whose K is split over blocks: each adds its part to the result atomically."""

from __future__ import annotations

import numpy as np

import tile_core as tile
import tile_core.language as T

EXAMPLE = {"split_k": {"M": 64, "N": 64, "K": 1024}}


@tile.jit
def split_k(M, N, K, splits=4, block_M=64, block_N=64, block_K=32, dtype="float16"):
    part = T.ceildiv(T.ceildiv(K, splits), block_K) * block_K

    @T.prim_func
    def kernel(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), splits, threads=128) as (bx, by, bz):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            acc = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(acc)
            for ko in T.Pipelined(part // block_K, num_stages=2):
                T.copy(A[by * block_M, bz * part + ko * block_K], A_shared)
                T.copy(B[bz * part + ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, acc)
            T.atomic_add(C[by * block_M, bx * block_N], acc)

    return kernel


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float32) @ b.astype(np.float32)


def main() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((64, 1024)).astype(np.float16)
    b = rng.standard_normal((1024, 64)).astype(np.float16)
    c = np.zeros((64, 64), np.float32)
    split_k(**EXAMPLE["split_k"])(a, b, c)
    print("largest error", np.abs(c - reference(a, b)).max())


if __name__ == "__main__":
    main()
