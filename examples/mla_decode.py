"""Decoding with multi-head latent attention: all heads share one row of 512 + 64 numbers for a key, the first 512 are its value.

The keys may be split over blocks; the cache is contiguous or paged. What it holds behind a sequence's end takes no part, but
must be finite.
"""

from __future__ import annotations

import numpy as np
from attention_variants import weighted
from flash_decoding import gathered
from online_softmax import LOG2E, finish, fold, running, start
from split_softmax import combine, load_rows

import tile_core as tile
import tile_core.language as T

COLUMNS = T.GemmWarpPolicy.FullCol
EXAMPLE = {"decode": {"batch": 2, "heads": 128, "max_kv": 256, "splits": 2, "page": 64}}


@tile.jit(out_idx=[-1])
def decode(
    batch,
    heads,
    max_kv,
    dim=512,
    rope=64,
    splits=1,
    page=0,
    pages=0,
    softmax_scale=None,
    block_H=64,
    block_N=64,
    tiles=2,
    ordered=False,
    dtype="float16",
):
    """``page``: rows of a page, 0 if the cache is contiguous; ``pages``: how many there are, by default as many as are needed.

    ``ordered``: a tensor gives the sequences in the order in which blocks begin with them. Where lengths differ much, the longest
    should come first.

    ``tiles`` of ``block_N`` keys are one step: the softmax of one then runs under the products of the others.
    """
    scale = (softmax_scale or (dim + rope) ** -0.5) * LOG2E

    @T.macro
    def attend(Q, KV, lengths, table, order, Output):
        sizes = ((dim,), ()) if splits > 1 else ()
        Partial, Lse = [T.alloc_global((batch, heads, splits, *n), "float32") for n in sizes] or (None, None)
        with T.Kernel(splits, T.ceildiv(heads, block_H), batch, threads=256) as (bx, by, at):
            b = at if order is None else order[at]
            Q_shared = T.alloc_shared((block_H, dim + rope), dtype)
            KV_shared = [T.alloc_shared((block_N, dim + rope), dtype) for _ in range(tiles)]
            weights = T.alloc_shared((block_H, block_N), dtype)
            scores = [T.alloc_fragment((block_H, block_N), "float32") for _ in range(tiles)]
            acc, lse = (T.alloc_fragment((block_H, *n), "float32") for n in ((dim,), ()))
            state = running(block_H)
            T.copy(Q[b, by * block_H : (by + 1) * block_H, :], Q_shared)
            T.fill(acc, 0)
            start(state)
            length = lengths[b]
            steps = T.ceildiv(length, tiles * block_N)
            share = T.ceildiv(steps, splits)
            begin = T.min(bx * share, steps)
            for k in T.Pipelined(begin, T.min(begin + share, steps), num_stages=2 // tiles):
                for n in [*range(tiles)]:
                    load_rows(KV, KV_shared[n], table, b, (k * tiles + n) * block_N)
                    T.gemm(
                        Q_shared, KV_shared[n], scores[n], transpose_B=True, clear_accum=True, policy=COLUMNS
                    )
                for n in [*range(tiles)]:
                    first, score = (k * tiles + n) * block_N, scores[n]
                    for i, j in T.Parallel(block_H, block_N):
                        score[i, j] = T.if_then_else(first + j >= length, -T.infinity("float32"), score[i, j])
                    fold(state, score, weights, acc, scale, slack=8)
                    T.gemm(weights, KV_shared[n][:, :dim], acc, policy=COLUMNS)
            finish(state, acc, lse, scale)
            if Partial is None or Lse is None:
                T.copy(acc, Output[b, by * block_H : (by + 1) * block_H, :])
            else:
                T.copy(acc, Partial[b, by * block_H : (by + 1) * block_H, bx, :])
                T.copy(lse, Lse[b, by * block_H : (by + 1) * block_H, bx])
        if Partial is not None:
            combine(Partial, Lse, Output)

    many = T.ceildiv(max_kv, page or max_kv)
    kv = (pages or batch * many, page or max_kv, dim + rope)

    @T.prim_func
    def kernel(
        Q: T.Tensor((batch, heads, dim + rope), dtype),
        KV: T.Tensor(kv, dtype),
        lengths: T.Tensor((batch,), "int32"),
        table: T.Tensor((batch, many), "int32") if page else None,
        order: T.Tensor((batch,), "int32", distinct=True) if ordered else None,
        Output: T.Tensor((batch, heads, dim), dtype),
    ):
        attend(Q, KV, lengths, table, order, Output)

    return kernel


def reference(q, kv, lengths, table=None, dim=512) -> np.ndarray:
    q, kv = (x.astype(np.float64) for x in (q, gathered(kv, table)))
    scores = np.einsum("bhd,bnd->bhn", q, kv) / np.sqrt(q.shape[-1])
    scores[np.broadcast_to(np.arange(kv.shape[1]) >= lengths[:, None, None], scores.shape)] = -np.inf
    return weighted(scores, kv[..., :dim])[0]


def main() -> None:
    rng = np.random.default_rng(0)
    sizes = dict(EXAMPLE["decode"])
    page = sizes.pop("page")
    q = rng.standard_normal((sizes["batch"], sizes["heads"], 576)).astype(np.float16)
    kv = rng.standard_normal((sizes["batch"], sizes["max_kv"], 576)).astype(np.float16)
    lengths = np.array([sizes["max_kv"], 100], np.int32)
    out = decode(**sizes)(q, kv, lengths)
    print("contiguous: largest error", np.abs(out - reference(q, kv, lengths)).max())
    table = rng.permutation(sizes["batch"] * sizes["max_kv"] // page).astype(np.int32)
    table, kv = table.reshape(sizes["batch"], -1), kv.reshape(-1, page, 576)
    out = decode(**sizes, page=page)(q, kv, lengths, table)
    print("paged: largest error", np.abs(out - reference(q, kv, lengths, table)).max())


if __name__ == "__main__":
    main()
