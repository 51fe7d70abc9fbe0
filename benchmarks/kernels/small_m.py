"""Products with few rows: C[M, N] = A[M, K] B[N, K]^T where B, the weights, is nearly all the traffic."""

from __future__ import annotations

import tile_core as tile
import tile_core.language as T


@tile.jit
def small_m(
    M,
    N,
    K,
    block_M=16,
    block_N=64,
    block_K=128,
    num_stages=10,
    threads=128,
    spread=0,
    b_first=True,
    dtype="bfloat16",
):
    """Rows of B are the rows of the matrix instruction, so that few rows of A waste nothing of it.

    ``spread``: block x begins at step ``x * spread`` of K, so that not all blocks read one part of A at one time.
    """

    @T.prim_func
    def kernel(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K), dtype)
            C_local = T.alloc_fragment((block_N, block_M), "float32")
            steps = T.ceildiv(K, block_K)
            T.clear(C_local)
            for ko in T.Pipelined(steps, num_stages=num_stages):
                k = (ko + bx * spread) % steps * block_K
                if b_first:
                    T.copy(B[bx * block_N, k], B_shared)
                T.copy(A[by * block_M, k], A_shared)
                if not b_first:
                    T.copy(B[bx * block_N, k], B_shared)
                T.gemm(B_shared, A_shared, C_local, transpose_B=True)
            for i, j in T.Parallel(block_N, block_M):
                if by * block_M + j < M and bx * block_N + i < N:
                    C[by * block_M + j, bx * block_N + i] = C_local[i, j]

    return kernel


@tile.jit
def spread_gemm(
    M, N, K, block_M=128, block_N=64, block_K=64, num_stages=6, threads=256, spread=0, dtype="bfloat16"
):
    """The plain product with the blocks' beginnings spread over K."""

    @T.prim_func
    def kernel(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            steps = T.ceildiv(K, block_K)
            T.clear(C_local)
            for ko in T.Pipelined(steps, num_stages=num_stages):
                k = (ko + bx * spread) % steps * block_K
                T.copy(A[by * block_M, k], A_shared)
                T.copy(B[bx * block_N, k], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return kernel
