"""Flash attention over the tiles of keys that a mask names for each tile of queries and head; causal within them, if wished.

A launch before makes lists of the mask, so that the loop over keys has no branch and its copies run ahead.
"""

from __future__ import annotations

import numpy as np
from attention_variants import is_hidden, weighted
from online_softmax import LOG2E, finish, fold, running, start

import tile_core as tile
import tile_core.language as T

EXAMPLE = {"attention": {"batch": 1, "heads": 2, "seq_q": 256, "seq_kv": 256, "dim": 64}}


@T.macro
def list_tiles(mask, tiles, counts):
    """The numbers of the tiles that each row of the mask names, in order, and how many they are."""
    batch, heads, rows, columns = mask.shape
    with T.Kernel(rows, heads, batch, threads=128) as (bx, by, bz):
        named = T.alloc_shared((1, columns), "int32")
        place = T.alloc_shared((1, columns), "int32")
        for i, j in T.Parallel(1, columns):
            named[i, j] = T.if_then_else(mask[bz, by, bx + i, j] != 0, 1, 0)
        T.cumsum(named, place, dim=1)
        for i, j in T.Parallel(1, columns):
            if named[i, j] != 0:
                tiles[bz, by, bx + i, place[i, j] - 1] = j
        counts[bz, by, bx] = place[0, columns - 1]


@tile.jit(out_idx=[-2, -1])
def attention(
    batch,
    heads,
    seq_q,
    seq_kv,
    dim,
    causal=False,
    block_M=64,
    block_N=64,
    num_stages=2,
    threads=128,
    dtype="float16",
):
    scale = (1.0 / dim) ** 0.5 * LOG2E
    past = seq_kv - seq_q  # row i of a causal mask sees keys up to i + past
    q, kv = (batch, heads, seq_q, dim), (batch, heads, seq_kv, dim)
    grid = (batch, heads, T.ceildiv(seq_q, block_M), T.ceildiv(seq_kv, block_N))

    @T.prim_func
    def kernel(
        Q: T.Tensor(q, dtype),
        K: T.Tensor(kv, dtype),
        V: T.Tensor(kv, dtype),
        mask: T.Tensor(grid, "int8"),
        Output: T.Tensor(q, dtype),
        Lse: T.Tensor(q[:3], "float32"),
    ):
        tiles = T.alloc_global(grid, "int32")
        counts = T.alloc_global(grid[:3], "int32")
        list_tiles(mask, tiles, counts)
        with T.Kernel(T.ceildiv(seq_q, block_M), heads, batch, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_M, dim), dtype)
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            scores = T.alloc_fragment((block_M, block_N), "float32")
            weights = T.alloc_fragment((block_M, block_N), dtype)
            acc = T.alloc_fragment((block_M, dim), "float32")
            lse = T.alloc_fragment((block_M,), "float32")
            state = running(block_M)
            T.copy(Q[bz, by, bx * block_M : (bx + 1) * block_M, :], Q_shared)
            T.fill(acc, 0)
            start(state)
            for n in T.Pipelined(counts[bz, by, bx], num_stages=num_stages):
                first = tiles[bz, by, bx, n] * block_N
                T.copy(K[bz, by, first : first + block_N, :], K_shared)
                T.gemm(
                    Q_shared,
                    K_shared,
                    scores,
                    transpose_B=True,
                    clear_accum=True,
                    policy=T.GemmWarpPolicy.FullRow,
                )
                for i, j in T.Parallel(block_M, block_N):
                    hidden = is_hidden(first + j, bx * block_M + i + past, seq_kv, causal, scores[i, j])
                    scores[i, j] = T.if_then_else(hidden, -T.infinity("float32"), scores[i, j])
                fold(state, scores, weights, acc, scale)
                T.copy(V[bz, by, first : first + block_N, :], V_shared)
                T.gemm(weights, V_shared, acc, policy=T.GemmWarpPolicy.FullRow)
            finish(state, acc, lse, scale)
            T.copy(acc, Output[bz, by, bx * block_M : (bx + 1) * block_M, :])
            T.copy(lse, Lse[bz, by, bx * block_M : (bx + 1) * block_M])

    return kernel


def reference(q, k, v, mask, causal=False, block_M=64, block_N=64) -> tuple[np.ndarray, np.ndarray]:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    rows, columns = q.shape[2], k.shape[2]
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    seen = np.repeat(np.repeat(mask, block_M, axis=2), block_N, axis=3)[:, :, :rows, :columns] != 0
    if causal:
        seen = seen & (np.arange(columns)[None, :] <= np.arange(rows)[:, None] + columns - rows)
    return weighted(np.where(seen, scores, -np.inf), v)


def main() -> None:
    rng = np.random.default_rng(0)
    sizes = EXAMPLE["attention"]
    shape = (sizes["batch"], sizes["heads"], sizes["seq_q"], sizes["dim"])
    q, k, v = rng.standard_normal((3, *shape)).astype(np.float16)
    mask = rng.integers(0, 2, (shape[0], shape[1], 4, 4)).astype(np.int8)
    mask[..., 0] = 1
    for causal in (False, True):
        got = attention(**sizes, causal=causal)(q, k, v, mask)
        errors = [np.abs(x - y).max() for x, y in zip(got, reference(q, k, v, mask, causal), strict=True)]
        print(f"causal={causal}: largest error {errors[0]}, of the LSE {errors[1]}")


if __name__ == "__main__":
    main()
