"""Matrix product of 8-bit floats with a scale for each 128 values of a row of A and for each 128 x 128 block of B."""

from __future__ import annotations

import ml_dtypes
import numpy as np

import tile_core as tile
import tile_core.language as T

EXAMPLE = {"fp8_gemm": {"M": 128, "N": 256, "K": 256}}
GROUP = 128


@tile.jit(out_idx=[-1])
def fp8_gemm(
    M, N, K, block_M=64, block_N=128, num_stages=4, threads=128, dtype="float8_e4m3fn", out_dtype="bfloat16"
):
    """``C = A B^T``. The matrix unit sums the products of 128 values; what it gives is scaled and summed in float32."""
    if GROUP % block_N:
        raise ValueError(f"block_N is {block_N}: a tile must have one scale of B, so it must divide {GROUP}")
    groups = T.ceildiv(K, GROUP)

    @T.prim_func
    def kernel(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((N, K), dtype),
        A_scale: T.Tensor((groups, M), "float32"),
        B_scale: T.Tensor((T.ceildiv(N, GROUP), groups), "float32"),
        C: T.Tensor((M, N), out_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, GROUP), dtype)
            B_shared = T.alloc_shared((block_N, GROUP), dtype)
            scales = T.alloc_shared((block_M,), "float32")
            part = T.alloc_fragment((block_M, block_N), "float32")
            acc = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(acc)
            for k in T.Pipelined(groups, num_stages=num_stages):
                T.copy(A[by * block_M, k * GROUP], A_shared)
                T.copy(B[bx * block_N, k * GROUP], B_shared)
                T.copy(A_scale[k, by * block_M], scales)
                T.clear(part)
                T.gemm(A_shared, B_shared, part, transpose_B=True)
                for i, j in T.Parallel(block_M, block_N):
                    acc[i, j] += part[i, j] * (scales[i] * B_scale[bx * block_N // GROUP, k])
            T.copy(acc, C[by * block_M, bx * block_N])

    return kernel


def quantised(x: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """8-bit values, and a scale for each ``rows`` x 128 of them: the largest becomes 448."""
    m, k = x.shape
    full = np.pad(x, ((0, -m % rows), (0, -k % GROUP))).astype(np.float32)
    blocks = full.reshape(full.shape[0] // rows, rows, -1, GROUP)
    scale = np.maximum(np.abs(blocks).max(axis=(1, 3)) / 448, 1e-12)
    values = (blocks / scale[:, None, :, None]).reshape(full.shape)[:m, :k]
    return values.astype(ml_dtypes.float8_e4m3fn), scale.astype(np.float32)


def operands(rng: np.random.Generator, m: int, n: int, k: int) -> list[np.ndarray]:
    """A, B and their scales; those of A stand along its rows, so that a tile's are neighbours."""
    a, a_scale = quantised(rng.standard_normal((m, k)), 1)
    b, b_scale = quantised(rng.standard_normal((n, k)), GROUP)
    return [a, b, np.ascontiguousarray(a_scale.T), b_scale]


def reference(a: np.ndarray, b: np.ndarray, a_scale: np.ndarray, b_scale: np.ndarray) -> np.ndarray:
    (m, k), n = a.shape, b.shape[0]
    wide = np.repeat(a_scale.T, GROUP, axis=1)[:, :k] * a.astype(np.float32)
    blocks = np.repeat(np.repeat(b_scale, GROUP, axis=0), GROUP, axis=1)[:n, :k]
    return (wide @ (blocks * b.astype(np.float32)).T).reshape(m, n)


def main() -> None:
    sizes = EXAMPLE["fp8_gemm"]
    data = operands(np.random.default_rng(0), *sizes.values())
    c, wanted = fp8_gemm(**sizes)(*data), reference(*data)
    print("largest error", np.abs(c.astype(np.float32) - wanted).max(), "of", np.abs(wanted).max())


if __name__ == "__main__":
    main()
