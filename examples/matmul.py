"""Matrix product written with the least: no grid, no regions, no loop index, no clearing. All of that is inferred.

``python examples/matmul.py`` multiplies two random matrices on the ``cpu`` target and compares with numpy.
"""

from __future__ import annotations

import time

import numpy as np

import tile_core as tile
import tile_core.language as T

EXAMPLE = {"matmul": {"M": 512, "N": 512, "K": 512, "block_M": 64, "block_N": 64, "block_K": 64}}


@tile.jit
def matmul(M, N, K, block_M, block_N, block_K, dtype="float16"):
    @T.prim_func
    def kernel(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        A_shared = T.alloc_shared((block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_K, block_N), dtype)
        C_frag = T.alloc_fragment((block_M, block_N), dtype)
        with T.Pipelined(K // block_K, num_stages=3):
            T.copy(A, A_shared)
            T.copy(B, B_shared)
            T.gemm(A_shared, B_shared, C_frag)
        T.copy(C_frag, C)

    return kernel


def main() -> None:
    sizes = EXAMPLE["matmul"]
    rng = np.random.default_rng(0)
    a = rng.standard_normal((sizes["M"], sizes["K"])).astype(np.float16)
    b = rng.standard_normal((sizes["K"], sizes["N"])).astype(np.float16)
    c = np.empty((sizes["M"], sizes["N"]), np.float16)
    with tile.target("cpu"):
        kernel = matmul(**sizes)
        begin = time.perf_counter()
        kernel(a, b, c)
        first = time.perf_counter() - begin
        samples = tile.bench(kernel, a, b, c)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    error = np.abs(c - expected).max() / np.abs(expected).max()
    print(f"{kernel}")
    print("inferred:", *kernel.plan.notes, sep="\n  ")
    print(f"source:   {kernel.source_file}")
    print(
        f"result:   {c[0, :4]} ..., numpy {expected[0, :4].round(2)} ..., largest relative error {error:.1e}"
    )
    print(f"time:     {samples.median:.3f} ms (first call with compilation {first * 1e3:.0f} ms)")
    if error > 2e-2:
        raise SystemExit("the result differs from numpy's")


if __name__ == "__main__":
    main()
