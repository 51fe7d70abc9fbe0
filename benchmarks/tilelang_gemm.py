"""A peer: TileLang's matrix product, C[M, N] = A[M, K] B[N, K]^T, from the same tile program as ours."""

from __future__ import annotations

from typing import Any

import tilelang
import tilelang.language as T

# BM, BN, BK, stages, threads: those that were best of its own search space on this device
FEW_ROWS = ((16, 64, 128, 4, 128), (16, 64, 256, 3, 128))
SOME_ROWS = ((64, 128, 64, 4, 128), (128, 128, 64, 4, 256), (128, 64, 64, 4, 128))
LARGE = ((128, 256, 64, 4, 256),)
PANEL = 10


def configurations(m: int) -> tuple[tuple[int, ...], ...]:
    """The ones that are tried for a product with ``m`` rows."""
    return FEW_ROWS if m <= 16 else SOME_ROWS if m <= 128 else LARGE


@tilelang.jit
def _product(M, N, K, block_M, block_N, block_K, num_stages, threads, dtype):
    @T.prim_func
    def kernel(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.use_swizzle(PANEL)
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[bx * block_N, ko * block_K], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return kernel


def contestant(config: tuple[int, ...], m: int, n: int, k: int, dtype: str) -> Any:
    """A function of (A, B, C). Compiles the kernel."""
    kernel = _product(m, n, k, *config, dtype)
    return lambda data: kernel(*data[:3])
