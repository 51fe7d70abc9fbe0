"""Flash attention, forward: softmax(Q K^T / sqrt(D)) V without storing the scores. Causal or not; any sequence lengths."""

from __future__ import annotations

import math

import numpy as np

import tile_core as tile
import tile_core.language as T

ROWS = T.GemmWarpPolicy.FullRow
EXAMPLE = {"attention": {"batch": 1, "heads": 2, "seq_q": 128, "seq_kv": 128, "dim": 64}}


@tile.jit(out_idx=[3])
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
    scale = (1.0 / dim) ** 0.5 * math.log2(math.e)
    past = seq_kv - seq_q  # row i of a causal mask sees keys up to i + past

    @T.prim_func
    def kernel(
        Q: T.Tensor((batch, heads, seq_q, dim), dtype),
        K: T.Tensor((batch, heads, seq_kv, dim), dtype),
        V: T.Tensor((batch, heads, seq_kv, dim), dtype),
        Output: T.Tensor((batch, heads, seq_q, dim), dtype),
    ):
        with T.Kernel(T.ceildiv(seq_q, block_M), heads, batch, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_M, dim), dtype)
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            scores = T.alloc_fragment((block_M, block_N), "float32")
            weights = T.alloc_fragment((block_M, block_N), dtype)
            acc = T.alloc_fragment((block_M, dim), "float32")
            of_rows = (block_M,), "float32"
            top, top_before, shift, rescale, row_sum, total = (T.alloc_fragment(*of_rows) for _ in range(6))

            T.copy(Q[bz, by, bx * block_M : (bx + 1) * block_M, :], Q_shared)
            T.fill(acc, 0)
            T.fill(total, 0)
            T.fill(top, -T.infinity("float32"))
            visible = T.min(seq_kv, (bx + 1) * block_M + past) if causal else seq_kv
            for k in T.Pipelined(T.ceildiv(T.max(visible, 0), block_N), num_stages=num_stages):
                T.copy(K[bz, by, k * block_N : (k + 1) * block_N, :], K_shared)
                T.gemm(Q_shared, K_shared, scores, transpose_B=True, clear_accum=True, policy=ROWS)
                for i, j in T.Parallel(block_M, block_N):
                    hidden = k * block_N + j >= seq_kv
                    if causal:
                        hidden = hidden or k * block_N + j > bx * block_M + i + past
                    scores[i, j] = T.if_then_else(hidden, -T.infinity("float32"), scores[i, j])
                T.copy(top, top_before)
                T.reduce_max(scores, top, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    # a row that has seen no key yet is shifted by 0: exp2(-inf - -inf) would be NaN
                    shift[i] = T.if_then_else(top[i] == -T.infinity("float32"), 0, top[i] * scale)
                    rescale[i] = T.__exp2(top_before[i] * scale - shift[i])
                for i, j in T.Parallel(block_M, block_N):
                    scores[i, j] = T.__exp2(scores[i, j] * scale - shift[i])
                T.reduce_sum(scores, row_sum, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * rescale[i] + row_sum[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(block_M, dim):
                    acc[i, j] = acc[i, j] * rescale[i]
                T.copy(V[bz, by, k * block_N : (k + 1) * block_N, :], V_shared)
                T.gemm(weights, V_shared, acc, policy=ROWS)
            for i in T.Parallel(block_M):
                total[i] = T.if_then_else(total[i] > 0, 1 / total[i], 0)
            for i, j in T.Parallel(block_M, dim):
                acc[i, j] = acc[i, j] * total[i]
            T.copy(acc, Output[bz, by, bx * block_M : (bx + 1) * block_M, :])

    return kernel


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool = False) -> np.ndarray:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if causal:
        rows, columns = scores.shape[-2:]
        hidden = np.arange(columns)[None, :] > np.arange(rows)[:, None] + columns - rows
        scores = np.where(hidden, -np.inf, scores)
    top = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = e.sum(axis=-1, keepdims=True)
    return np.where(total > 0, e / np.where(total > 0, total, 1), 0) @ v


def main() -> None:
    rng = np.random.default_rng(0)
    sizes = EXAMPLE["attention"]
    shape = (sizes["batch"], sizes["heads"], sizes["seq_q"], sizes["dim"])
    q, k, v = rng.standard_normal((3, *shape)).astype(np.float16)
    for causal in (False, True):
        out = attention(**sizes, causal=causal)(q, k, v)
        print(f"causal={causal}: largest error", np.abs(out - reference(q, k, v, causal)).max())


if __name__ == "__main__":
    main()
