"""Other forms of the product: operands stored the other way round, batches, groups of different sizes."""

from __future__ import annotations

import tile_core as tile
import tile_core.language as T


@tile.jit
def stored(M, N, K, a_t, b_t, block_M=128, block_N=256, block_K=64, num_stages=4, dtype="bfloat16"):
    """``a_t``: A is stored (K, M); ``b_t``: B is stored (N, K)."""

    @T.prim_func
    def kernel(
        A: T.Tensor((K, M) if a_t else (M, K), dtype),
        B: T.Tensor((N, K) if b_t else (K, N), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=256) as (bx, by):
            A_shared = T.alloc_shared((block_K, block_M) if a_t else (block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K) if b_t else (block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                if a_t:
                    T.copy(A[ko * block_K, by * block_M], A_shared)
                else:
                    T.copy(A[by * block_M, ko * block_K], A_shared)
                if b_t:
                    T.copy(B[bx * block_N, ko * block_K], B_shared)
                else:
                    T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_A=a_t, transpose_B=b_t)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return kernel


@tile.jit
def batched(batch, M, N, K, block_M=128, block_N=256, block_K=64, num_stages=4, dtype="bfloat16"):
    @T.prim_func
    def kernel(
        A: T.Tensor((batch, M, K), dtype),
        B: T.Tensor((batch, N, K), dtype),
        C: T.Tensor((batch, M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), batch, threads=256) as (bx, by, bz):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[bz, by * block_M, ko * block_K], A_shared)
                T.copy(B[bz, bx * block_N, ko * block_K], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
            T.copy(C_local, C[bz, by * block_M, bx * block_N])

    return kernel


@tile.jit
def grouped(M, N, K, groups, tiles, block_M=128, block_N=256, block_K=64, num_stages=4, dtype="bfloat16"):
    """Rows of A belong to groups, each with a matrix of its own in B. Row tile t of a group begins at row ``first[t]`` and has
    the rows before ``end[t]``; tiles without rows have ``first[t] == end[t]``.
    """

    @T.prim_func
    def kernel(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((groups, N, K), dtype),
        C: T.Tensor((M, N), dtype),
        group: T.Tensor((tiles,), "int32"),
        first: T.Tensor((tiles,), "int32"),
        end: T.Tensor((tiles,), "int32"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), tiles, threads=256) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            row = first[by]
            T.assume(row >= 0)
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[row : row + block_M, ko * block_K : (ko + 1) * block_K], A_shared)
                T.copy(
                    B[group[by], bx * block_N : (bx + 1) * block_N, ko * block_K : (ko + 1) * block_K],
                    B_shared,
                )
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
            if row + block_M <= end[by]:
                T.copy(C_local, C[row : row + block_M, bx * block_N : (bx + 1) * block_N])
            else:
                for i, j in T.Parallel(block_M, block_N):
                    if row + i < end[by] and bx * block_N + j < N:
                        C[row + i, bx * block_N + j] = C_local[i, j]

    return kernel
