"""Flash attention, forward, of sequences of various lengths that are stored one after the other, without padding.

Sequence ``b`` has the rows ``starts_q[b]`` to ``starts_q[b + 1]`` of Q, and those of ``starts_kv`` of K and V. One compiled kernel
serves any number of rows.
"""

from __future__ import annotations

import numpy as np
from attention_variants import is_hidden
from attention_variants import reference as of_one
from online_softmax import LOG2E, finish, fold, running, start

import tile_core as tile
import tile_core.language as T

EXAMPLE = {"attention": {"batch": 3, "heads": 4, "max_q": 80, "dim": 64, "groups": 2, "causal": True}}


@tile.jit(out_idx=[-2, -1])
def attention(
    batch,
    heads,
    max_q,
    dim,
    groups=1,
    causal=False,
    window=0,
    block_M=64,
    block_N=64,
    num_stages=2,
    threads=128,
    dtype="float16",
):
    scale = (1.0 / dim) ** 0.5 * LOG2E
    rows_q, rows_kv = T.dynamic("rows_q, rows_kv")

    @T.prim_func
    def kernel(
        Q: T.Tensor((rows_q, heads, dim), dtype),
        K: T.Tensor((rows_kv, heads // groups, dim), dtype),
        V: T.Tensor((rows_kv, heads // groups, dim), dtype),
        starts_q: T.Tensor((batch + 1,), "int32"),
        starts_kv: T.Tensor((batch + 1,), "int32"),
        Output: T.Tensor((rows_q, heads, dim), dtype),
        Lse: T.Tensor((heads, rows_q), "float32"),
    ):
        with T.Kernel(T.ceildiv(max_q, block_M), heads, batch, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_M, dim), dtype)
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            scores = T.alloc_fragment((block_M, block_N), "float32")
            weights = T.alloc_fragment((block_M, block_N), dtype)
            acc = T.alloc_fragment((block_M, dim), "float32")
            lse = T.alloc_fragment((block_M,), "float32")
            state = running(block_M)
            T.assume(starts_q[bz] <= starts_q[bz + 1])
            first_q = starts_q[bz] + bx * block_M
            rows = starts_q[bz + 1] - first_q  # of this sequence, from this block on; 0 or less: none
            seq_kv = starts_kv[bz + 1] - starts_kv[bz]
            last = seq_kv - rows  # the last key that this block's first row sees, if it is causal
            T.copy(Q[first_q : first_q + block_M, by, :], Q_shared)
            T.fill(acc, 0)
            start(state)
            stop = T.min(seq_kv, last + block_M) if causal or window else seq_kv
            begin = T.max(last + 1 - window, 0) // block_N if window else 0
            end = T.if_then_else(rows > 0, T.ceildiv(T.max(stop, 0), block_N), begin)
            for k in T.Pipelined(begin, end, num_stages=num_stages):
                first_kv = starts_kv[bz] + k * block_N
                T.copy(K[first_kv : first_kv + block_N, by // groups, :], K_shared)
                T.gemm(
                    Q_shared,
                    K_shared,
                    scores,
                    transpose_B=True,
                    clear_accum=True,
                    policy=T.GemmWarpPolicy.FullRow,
                )
                for i, j in T.Parallel(block_M, block_N):
                    hidden = is_hidden(k * block_N + j, i + last, seq_kv, causal, window)
                    scores[i, j] = T.if_then_else(hidden, -T.infinity("float32"), scores[i, j])
                fold(state, scores, weights, acc, scale)
                T.copy(V[first_kv : first_kv + block_N, by // groups, :], V_shared)
                T.gemm(weights, V_shared, acc, policy=T.GemmWarpPolicy.FullRow)
            finish(state, acc, lse, scale)
            for i, d in T.Parallel(block_M, dim):
                if i < rows:  # what follows belongs to the next sequence
                    Output[first_q + i, by, d] = acc[i, d]
            for i in T.Parallel(block_M):
                if i < rows:
                    Lse[by, first_q + i] = lse[i]

    return kernel


def reference(q, k, v, starts_q, starts_kv, causal=False, window=0) -> tuple[np.ndarray, np.ndarray]:
    """Each sequence for itself."""
    out, lse = np.zeros(q.shape), np.zeros((q.shape[1], q.shape[0]))
    for b in range(len(starts_q) - 1):
        rows, keys = slice(*starts_q[b : b + 2]), slice(*starts_kv[b : b + 2])
        one = (np.swapaxes(x, 0, 1)[None] for x in (q[rows], k[keys], v[keys]))
        found, sums = of_one(*one, causal=causal, window=window)
        out[rows], lse[:, rows] = np.swapaxes(found[0], 0, 1), sums[0]
    return out, lse


def main() -> None:
    rng = np.random.default_rng(0)
    sizes = EXAMPLE["attention"]
    starts = np.array([0, 17, 17 + sizes["max_q"], 17 + sizes["max_q"] + 1], np.int32)
    q = rng.standard_normal((starts[-1], sizes["heads"], sizes["dim"])).astype(np.float16)
    kv = (2, starts[-1], sizes["heads"] // sizes["groups"], sizes["dim"])
    k, v = rng.standard_normal(kv).astype(np.float16)
    out, lse = attention(**sizes)(q, k, v, starts, starts)
    want, want_lse = reference(q, k, v, starts, starts, causal=sizes["causal"])
    print("largest error", np.abs(out - want).max(), "of the LSE", np.abs(lse - want_lse).max())


if __name__ == "__main__":
    main()
