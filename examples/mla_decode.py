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
    num_stages=1,
    threads=256,
    dtype="float16",
):
    """``page``: rows of a page, 0 if the cache is contiguous; ``pages``: how many there are, by default as many as are needed.

    ``tiles`` of ``block_N`` keys are one step: the softmax of one then runs under the products of the others.
    """
    scale = (softmax_scale or (dim + rope) ** -0.5) * LOG2E

    @T.macro
    def attend(Q, KV, lengths, table, Output):
        Partial = T.alloc_global((batch, heads, splits, dim), "float32") if splits > 1 else None
        Lse = T.alloc_global((batch, heads, splits), "float32") if splits > 1 else None
        with T.Kernel(splits, T.ceildiv(heads, block_H), batch, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_H, dim + rope), dtype)
            KV_shared = [T.alloc_shared((block_N, dim + rope), dtype) for _ in range(tiles)]
            weights = T.alloc_shared((block_H, block_N), dtype)
            scores = [T.alloc_fragment((block_H, block_N), "float32") for _ in range(tiles)]
            acc = T.alloc_fragment((block_H, dim), "float32")
            lse = T.alloc_fragment((block_H,), "float32")
            state = running(block_H)
            T.copy(Q[bz, by * block_H : (by + 1) * block_H, :], Q_shared)
            T.fill(acc, 0)
            start(state)
            length = lengths[bz]
            steps = T.ceildiv(length, tiles * block_N)
            share = T.ceildiv(steps, splits)
            begin = T.min(bx * share, steps)
            for k in T.Pipelined(begin, T.min(begin + share, steps), num_stages=num_stages):
                for n in [*range(tiles)]:
                    load_rows(KV, KV_shared[n], table, bz, (k * tiles + n) * block_N)
                    T.gemm(
                        Q_shared,
                        KV_shared[n],
                        scores[n],
                        transpose_B=True,
                        clear_accum=True,
                        policy=T.GemmWarpPolicy.FullCol,
                    )
                for n in [*range(tiles)]:
                    first, score = (k * tiles + n) * block_N, scores[n]
                    for i, j in T.Parallel(block_H, block_N):
                        hidden = first + j >= length
                        score[i, j] = T.if_then_else(hidden, -T.infinity("float32"), score[i, j])
                    fold(state, score, weights, acc, scale, slack=8)
                    T.gemm(weights, KV_shared[n][:, :dim], acc, policy=T.GemmWarpPolicy.FullCol)
            finish(state, acc, lse, scale)
            if Partial is None or Lse is None:
                T.copy(acc, Output[bz, by * block_H : (by + 1) * block_H, :])
            else:
                T.copy(acc, Partial[bz, by * block_H : (by + 1) * block_H, bx, :])
                T.copy(lse, Lse[bz, by * block_H : (by + 1) * block_H, bx])
        if Partial is not None:
            combine(Partial, Lse, Output)

    q, out, many = (batch, heads, dim + rope), (batch, heads, dim), T.ceildiv(max_kv, page or max_kv)
    kv = (pages or batch * many, page, dim + rope) if page else (batch, max_kv, dim + rope)
    if page:

        @T.prim_func
        def kernel(
            Q: T.Tensor(q, dtype),
            KV: T.Tensor(kv, dtype),
            lengths: T.Tensor((batch,), "int32"),
            table: T.Tensor((batch, many), "int32"),
            Output: T.Tensor(out, dtype),
        ):
            attend(Q, KV, lengths, table, Output)

    else:

        @T.prim_func
        def kernel(
            Q: T.Tensor(q, dtype),
            KV: T.Tensor(kv, dtype),
            lengths: T.Tensor((batch,), "int32"),
            Output: T.Tensor(out, dtype),
        ):
            attend(Q, KV, lengths, None, Output)

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
