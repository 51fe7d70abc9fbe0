"""Multi-head latent attention over whole prompts: keys of 128 + 64 numbers, of which all heads share the last 64; values of 128."""

from __future__ import annotations

import numpy as np
from attention_variants import is_hidden
from attention_variants import reference as attention_reference
from online_softmax import LOG2E, finish, fold, running, start

import tile_core as tile
import tile_core.language as T

EXAMPLE = {"prefill": {"batch": 1, "heads": 2, "seq_q": 128, "seq_kv": 128, "causal": True}}


@tile.jit(out_idx=[-2, -1])
def prefill(
    batch,
    heads,
    seq_q,
    seq_kv,
    dim=128,
    rope=64,
    causal=True,
    softmax_scale=None,
    block_M=64,
    block_N=64,
    num_stages=2,
    threads=128,
    dtype="float16",
):
    scale = (softmax_scale or (dim + rope) ** -0.5) * LOG2E
    past = seq_kv - seq_q  # row i of a causal mask sees keys up to i + past
    out, kv = (batch, heads, seq_q, dim), (batch, heads, seq_kv, dim)

    @T.prim_func
    def kernel(
        Q: T.Tensor((batch, heads, seq_q, dim + rope), dtype),
        K: T.Tensor(kv, dtype),
        K_rope: T.Tensor((batch, seq_kv, rope), dtype),
        V: T.Tensor(kv, dtype),
        Output: T.Tensor(out, dtype),
        Lse: T.Tensor(out[:3], "float32"),
    ):
        with T.Kernel(T.ceildiv(seq_q, block_M), heads, batch, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_M, dim + rope), dtype)
            K_shared = T.alloc_shared((block_N, dim), dtype)
            rope_shared = T.alloc_shared((block_N, rope), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            scores = T.alloc_fragment((block_M, block_N), "float32")
            weights = T.alloc_fragment((block_M, block_N), dtype)
            acc = T.alloc_fragment((block_M, dim), "float32")
            lse = T.alloc_fragment((block_M,), "float32")
            state = running(block_M)
            T.copy(Q[bz, by, bx * block_M : (bx + 1) * block_M, :], Q_shared)
            T.fill(acc, 0)
            start(state)
            stop = T.min(seq_kv, (bx + 1) * block_M + past) if causal else seq_kv
            for k in T.Pipelined(T.ceildiv(T.max(stop, 0), block_N), num_stages=num_stages):
                T.copy(K[bz, by, k * block_N : (k + 1) * block_N, :], K_shared)
                T.copy(K_rope[bz, k * block_N : (k + 1) * block_N, :], rope_shared)
                full = T.GemmWarpPolicy.FullRow
                T.gemm(Q_shared[:, :dim], K_shared, scores, transpose_B=True, clear_accum=True, policy=full)
                T.gemm(Q_shared[:, dim:], rope_shared, scores, transpose_B=True, policy=full)
                for i, j in T.Parallel(block_M, block_N):
                    hidden = is_hidden(k * block_N + j, bx * block_M + i + past, seq_kv, causal, scores[i, j])
                    scores[i, j] = T.if_then_else(hidden, -T.infinity("float32"), scores[i, j])
                fold(state, scores, weights, acc, scale)
                T.copy(V[bz, by, k * block_N : (k + 1) * block_N, :], V_shared)
                T.gemm(weights, V_shared, acc, policy=full)
            finish(state, acc, lse, scale)
            T.copy(acc, Output[bz, by, bx * block_M : (bx + 1) * block_M, :])
            T.copy(lse, Lse[bz, by, bx * block_M : (bx + 1) * block_M])

    return kernel


def reference(q, k, k_rope, v, causal=True) -> tuple[np.ndarray, np.ndarray]:
    shared = np.broadcast_to(k_rope[:, None], (*k.shape[:3], k_rope.shape[-1]))
    return attention_reference(q, np.concatenate([k, shared], axis=-1), v, causal=causal)


def main() -> None:
    rng = np.random.default_rng(0)
    sizes = EXAMPLE["prefill"]
    q = rng.standard_normal((sizes["batch"], sizes["heads"], sizes["seq_q"], 192)).astype(np.float16)
    k, v = rng.standard_normal((2, sizes["batch"], sizes["heads"], sizes["seq_kv"], 128)).astype(np.float16)
    k_rope = rng.standard_normal((sizes["batch"], sizes["seq_kv"], 64)).astype(np.float16)
    out, lse = prefill(**sizes)(q, k, k_rope, v)
    want, want_lse = reference(q, k, k_rope, v, sizes["causal"])
    print("largest error", np.abs(out - want).max(), "of the LSE", np.abs(lse - want_lse).max())


if __name__ == "__main__":
    main()
