"""Matrix times vector: each block reduces some rows, tile by tile along K."""

from __future__ import annotations

import numpy as np

import tile_core as tile
import tile_core.language as T

EXAMPLE = {"gemv": {"N": 256, "K": 512}}


@tile.jit(out_idx=[-1])
def gemv(N, K, block_N=32, block_K=128, dtype="float16"):
    @T.prim_func
    def kernel(W: T.Tensor((N, K), dtype), x: T.Tensor((K,), dtype), y: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), threads=128) as bn:
            w_tile = T.alloc_fragment((block_N, block_K), dtype)
            x_tile = T.alloc_fragment((block_K,), dtype)
            product = T.alloc_fragment((block_N, block_K), "float32")
            acc = T.alloc_fragment((block_N,), "float32")
            T.clear(acc)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(W[bn * block_N, ko * block_K], w_tile)
                T.copy(x[ko * block_K], x_tile)
                for i, j in T.Parallel(block_N, block_K):
                    product[i, j] = T.float32(w_tile[i, j]) * T.float32(x_tile[j])
                T.reduce_sum(product, acc, dim=1, clear=False)
            T.copy(acc, y[bn * block_N])

    return kernel


def reference(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    return w.astype(np.float32) @ x.astype(np.float32)


def main() -> None:
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((256, 512)).astype(np.float16), rng.standard_normal(512).astype(np.float16)
    y = gemv(**EXAMPLE["gemv"])(w, x)
    print("largest error", np.abs(y - reference(w, x)).max())


if __name__ == "__main__":
    main()
