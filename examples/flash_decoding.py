"""Flash decoding: one query for each sequence; its keys are split over blocks. Grouped heads; contiguous or paged cache.

The query heads that share keys are the rows of a tile. What a cache holds behind a sequence's end takes no part, but must be
finite.
"""

from __future__ import annotations

import numpy as np
from attention_variants import weighted
from online_softmax import LOG2E, finish, fold, running, start
from split_softmax import combine, load_rows

import tile_core as tile
import tile_core.language as T

EXAMPLE = {"decode": {"batch": 2, "heads": 8, "max_kv": 512, "dim": 64, "groups": 4, "splits": 4, "page": 64}}


@tile.jit(out_idx=[-1])
def decode(
    batch,
    heads,
    max_kv,
    dim,
    groups=1,
    splits=4,
    page=0,
    pages=0,
    block_H=16,
    block_N=64,
    num_stages=2,
    threads=128,
    dtype="float16",
):
    """``page``: rows of a page, 0 if the cache is contiguous; ``pages``: how many there are, by default as many as are needed."""
    scale = (1.0 / dim) ** 0.5 * LOG2E
    tiles = T.ceildiv(groups, block_H)  # of the query heads that share keys

    @T.macro
    def attend(Q, K, V, lengths, table, Output):
        Partial = T.alloc_global((batch, heads, splits, dim), "float32")
        Lse = T.alloc_global((batch, heads, splits), "float32")
        with T.Kernel(splits, heads // groups * tiles, batch, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_H, dim), dtype)
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            scores = T.alloc_fragment((block_H, block_N), "float32")
            weights = T.alloc_fragment((block_H, block_N), dtype)
            acc = T.alloc_fragment((block_H, dim), "float32")
            lse = T.alloc_fragment((block_H,), "float32")
            state = running(block_H)
            first, rows = by // tiles * groups + by % tiles * block_H, groups - by % tiles * block_H
            T.copy(Q[bz, first : first + block_H, :], Q_shared)
            T.fill(acc, 0)
            start(state)
            blocks = T.ceildiv(lengths[bz], block_N)
            share = T.ceildiv(blocks, splits)
            begin = T.min(bx * share, blocks)
            for k in T.Pipelined(begin, T.min(begin + share, blocks), num_stages=num_stages):
                load_rows(K, K_shared, table, bz, k * block_N, by // tiles)
                T.gemm(Q_shared, K_shared, scores, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(block_H, block_N):
                    scores[i, j] = T.if_then_else(
                        k * block_N + j >= lengths[bz], -T.infinity("float32"), scores[i, j]
                    )
                fold(state, scores, weights, acc, scale)
                load_rows(V, V_shared, table, bz, k * block_N, by // tiles)
                T.gemm(weights, V_shared, acc)
            finish(state, acc, lse, scale)
            for i, d in T.Parallel(block_H, dim):
                if i < rows:
                    Partial[bz, first + i, bx, d] = acc[i, d]
            for i in T.Parallel(block_H):
                if i < rows:
                    Lse[bz, first + i, bx] = lse[i]
        combine(Partial, Lse, Output)

    q, many = (batch, heads, dim), T.ceildiv(max_kv, page or max_kv)
    kv = (
        (pages or batch * many, page, heads // groups, dim) if page else (batch, max_kv, heads // groups, dim)
    )
    if page:

        @T.prim_func
        def kernel(
            Q: T.Tensor(q, dtype),
            K: T.Tensor(kv, dtype),
            V: T.Tensor(kv, dtype),
            lengths: T.Tensor((batch,), "int32"),
            table: T.Tensor((batch, many), "int32"),
            Output: T.Tensor(q, dtype),
        ):
            attend(Q, K, V, lengths, table, Output)

    else:

        @T.prim_func
        def kernel(
            Q: T.Tensor(q, dtype),
            K: T.Tensor(kv, dtype),
            V: T.Tensor(kv, dtype),
            lengths: T.Tensor((batch,), "int32"),
            Output: T.Tensor(q, dtype),
        ):
            attend(Q, K, V, lengths, None, Output)

    return kernel


def gathered(cache: np.ndarray, table: np.ndarray | None) -> np.ndarray:
    """A paged cache as a contiguous one."""
    if table is None:
        return cache
    return cache[table].reshape(table.shape[0], table.shape[1] * cache.shape[1], *cache.shape[2:])


def reference(q, k, v, lengths, table=None) -> np.ndarray:
    k, v = (np.swapaxes(gathered(x, table), 1, 2).astype(np.float64) for x in (k, v))
    groups = q.shape[1] // k.shape[1]
    k, v = (np.repeat(x, groups, axis=1) for x in (k, v))
    scores = np.einsum("bhd,bhnd->bhn", q.astype(np.float64), k) / np.sqrt(q.shape[-1])
    scores[np.broadcast_to(np.arange(k.shape[2]) >= lengths[:, None, None], scores.shape)] = -np.inf
    return weighted(scores[:, :, None, :], v)[0][:, :, 0]


def main() -> None:
    rng = np.random.default_rng(0)
    sizes = dict(EXAMPLE["decode"])
    page, heads_kv = sizes.pop("page"), sizes["heads"] // sizes["groups"]
    q = rng.standard_normal((sizes["batch"], sizes["heads"], sizes["dim"])).astype(np.float16)
    kv = (2, sizes["batch"], sizes["max_kv"], heads_kv, sizes["dim"])
    k, v = rng.standard_normal(kv).astype(np.float16)
    lengths = np.array([sizes["max_kv"], 100], np.int32)
    out = decode(**sizes)(q, k, v, lengths)
    print("contiguous: largest error", np.abs(out - reference(q, k, v, lengths)).max())
    table = rng.permutation(sizes["batch"] * sizes["max_kv"] // page).astype(np.int32)
    table = table.reshape(sizes["batch"], -1)
    k, v = (x.reshape(-1, page, heads_kv, sizes["dim"]) for x in (k, v))
    out = decode(**sizes, page=page)(q, k, v, lengths, table)
    print("paged: largest error", np.abs(out - reference(q, k, v, lengths, table)).max())


if __name__ == "__main__":
    main()
