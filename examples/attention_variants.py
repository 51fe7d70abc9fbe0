"""Flash attention, forward, with its variants: causal, sliding window, attention sink, grouped heads; also gives the rows' LSE.

``groups`` query heads share one head of keys and values. A row sees at most ``window`` keys, itself included (0: all). A sink is a
score for each query head that takes part in the softmax and has no value.
"""

from __future__ import annotations

import numpy as np
from online_softmax import LOG2E, finish, fold, running, start

import tile_core as tile
import tile_core.language as T

EXAMPLE = {
    "attention": {"batch": 1, "heads": 4, "seq_q": 128, "seq_kv": 128, "dim": 64, "groups": 2, "window": 48}
}


@T.macro
def is_hidden(key, last, seq_kv, causal, window):
    """Whether a row does not see a key; ``last`` is the last key that a causal row sees."""
    hidden = key >= seq_kv
    if causal or window:
        hidden = hidden or key > last
    if window:
        hidden = hidden or key <= last - window
    return hidden


@tile.jit(out_idx=[-2, -1])
def attention(
    batch,
    heads,
    seq_q,
    seq_kv,
    dim,
    groups=1,
    causal=False,
    window=0,
    sink=False,
    block_M=64,
    block_N=64,
    num_stages=2,
    threads=128,
    dtype="float16",
):
    scale = (1.0 / dim) ** 0.5 * LOG2E
    past = seq_kv - seq_q  # row i of a causal mask sees keys up to i + past

    @T.macro
    def attend(Q, K, V, Sinks, Output, Lse):
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
            if sink:  # as if a key with this score had been seen
                T.fill(state.total, 1)
                T.fill(state.top, Sinks[by] * (LOG2E / scale))
            stop = T.min(seq_kv, (bx + 1) * block_M + past) if causal or window else seq_kv
            first = T.max(bx * block_M + past + 1 - window, 0) // block_N if window else 0
            for k in T.Pipelined(first, T.ceildiv(T.max(stop, 0), block_N), num_stages=num_stages):
                T.copy(K[bz, by // groups, k * block_N : (k + 1) * block_N, :], K_shared)
                T.gemm(
                    Q_shared,
                    K_shared,
                    scores,
                    transpose_B=True,
                    clear_accum=True,
                    policy=T.GemmWarpPolicy.FullRow,
                )
                for i, j in T.Parallel(block_M, block_N):
                    hidden = is_hidden(k * block_N + j, bx * block_M + i + past, seq_kv, causal, window)
                    scores[i, j] = T.if_then_else(hidden, -T.infinity("float32"), scores[i, j])
                fold(state, scores, weights, acc, scale)
                T.copy(V[bz, by // groups, k * block_N : (k + 1) * block_N, :], V_shared)
                T.gemm(weights, V_shared, acc, policy=T.GemmWarpPolicy.FullRow)
            finish(state, acc, lse, scale)
            T.copy(acc, Output[bz, by, bx * block_M : (bx + 1) * block_M, :])
            T.copy(lse, Lse[bz, by, bx * block_M : (bx + 1) * block_M])

    q, kv = (batch, heads, seq_q, dim), (batch, heads // groups, seq_kv, dim)
    if sink:

        @T.prim_func
        def kernel(
            Q: T.Tensor(q, dtype),
            K: T.Tensor(kv, dtype),
            V: T.Tensor(kv, dtype),
            Sinks: T.Tensor((heads,), "float32"),
            Output: T.Tensor(q, dtype),
            Lse: T.Tensor(q[:3], "float32"),
        ):
            attend(Q, K, V, Sinks, Output, Lse)

    else:

        @T.prim_func
        def kernel(
            Q: T.Tensor(q, dtype),
            K: T.Tensor(kv, dtype),
            V: T.Tensor(kv, dtype),
            Output: T.Tensor(q, dtype),
            Lse: T.Tensor(q[:3], "float32"),
        ):
            attend(Q, K, V, None, Output, Lse)

    return kernel


def reference(q, k, v, sinks=None, causal=False, window=0) -> tuple[np.ndarray, np.ndarray]:
    """The result and the logarithms of the rows' sums, in float64; heads of q are a multiple of those of k and v."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    rows, columns = scores.shape[-2:]
    last, key = np.arange(rows)[:, None] + columns - rows, np.arange(columns)[None, :]
    hidden = (key > last) & bool(causal or window) | (key <= last - (window or 10**9))
    scores = np.where(hidden, -np.inf, scores)
    if sinks is not None:
        column = np.broadcast_to(sinks.astype(np.float64)[:, None, None], (*scores.shape[:3], 1))
        scores = np.concatenate([scores, column], axis=-1)
        v = np.concatenate([v, np.zeros_like(v[..., :1, :])], axis=-2)
    return weighted(scores, v)


def weighted(scores: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """softmax(scores) @ v and the scores' LSE; 0 and -inf where all scores of a row are -inf."""
    top = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    e = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = e.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = np.log(total) + np.where(np.isfinite(top), top, 0)
    return np.where(total > 0, e / np.where(total > 0, total, 1), 0) @ v, lse[..., 0]


def main() -> None:
    rng = np.random.default_rng(0)
    sizes = EXAMPLE["attention"]
    shape = (sizes["batch"], sizes["heads"], sizes["seq_q"], sizes["dim"])
    q = rng.standard_normal(shape).astype(np.float16)
    k, v = rng.standard_normal((2, shape[0], shape[1] // sizes["groups"], *shape[2:])).astype(np.float16)
    sinks = rng.standard_normal(shape[1]).astype(np.float32)
    for variant in ({"window": 0}, {"window": 0, "causal": True}, {"window": 48}, {"sink": True}):
        keywords = {**sizes, **variant}
        given = (q, k, v, sinks) if variant.get("sink") else (q, k, v)
        out, lse = attention(**keywords)(*given)
        want, want_lse = reference(*given, causal=bool(keywords.get("causal")), window=keywords["window"])
        errors = np.abs(out - want).max(), np.abs(lse - want_lse).max()
        print(f"{variant}: largest error {errors[0]}, of the LSE {errors[1]}")


if __name__ == "__main__":
    main()
