"""Linear attention, forward and backward: causal products without softmax, a chunk at a time, with a running state."""

from __future__ import annotations

import numpy as np

import tile_core as tile
import tile_core.language as T

EXAMPLE = {"linear_attention": {"batch": 1, "heads": 2, "seq": 256, "dim_k": 64, "dim_v": 32}}


@tile.jit(out_idx=[-1])
def linear_attention(
    batch,
    heads,
    seq,
    dim_k,
    dim_v,
    decay=False,
    reverse=False,
    chunk=64,
    block_V=64,
    num_stages=2,
    threads=128,
    dtype="float16",
):
    """``out[i] = sum over j <= i of (Q[i] K[j]) V[j]``; ``reverse``: over j >= i.

    ``decay``: one more tensor, and each term times ``2 ** (rate[head] |i - j|)``.
    """
    block_V, chunks = min(block_V, dim_v), T.ceildiv(seq, chunk)

    @T.macro
    def walk(Q, K, V, rate, out):
        with T.Kernel(T.ceildiv(dim_v, block_V), heads, batch, threads=threads) as (bx, h, b):
            Q_shared = T.alloc_shared((chunk, dim_k), dtype)
            K_shared = T.alloc_shared((chunk, dim_k), dtype)
            V_shared = T.alloc_shared((chunk, block_V), dtype)
            faded = T.alloc_shared((chunk, block_V), dtype) if decay else V_shared
            state_shared = T.alloc_shared((dim_k, block_V), dtype)
            state = T.alloc_fragment((dim_k, block_V), "float32")
            scores = T.alloc_fragment((chunk, chunk), "float32")
            weights = T.alloc_fragment((chunk, chunk), dtype)
            acc = T.alloc_fragment((chunk, block_V), "float32")
            fade = rate[h] if decay else 0.0
            T.clear(state)
            for step in T.Pipelined(chunks, num_stages=num_stages):
                row = (chunks - 1 - step if reverse else step) * chunk
                T.copy(Q[b, h, row : row + chunk, :], Q_shared)
                T.copy(K[b, h, row : row + chunk, :], K_shared)
                T.copy(V[b, h, row : row + chunk, bx * block_V : (bx + 1) * block_V], V_shared)
                T.copy(state, state_shared)
                T.clear(acc)
                T.gemm(Q_shared, state_shared, acc)
                T.clear(scores)
                T.gemm(Q_shared, K_shared, scores, transpose_B=True)
                for i, j in T.Parallel(chunk, chunk):
                    behind = j - i if reverse else i - j
                    weight = T.exp2(fade * behind) if decay else 1.0
                    weights[i, j] = T.if_then_else(behind >= 0, scores[i, j] * weight, 0)
                if decay:
                    for i, j in T.Parallel(chunk, block_V):
                        acc[i, j] *= T.exp2(fade * (chunk - i if reverse else i + 1))
                T.gemm(weights, V_shared, acc)
                T.copy(acc, out[b, h, row : row + chunk, bx * block_V : (bx + 1) * block_V])
                if decay:
                    for i, j in T.Parallel(chunk, block_V):
                        faded[i, j] = V_shared[i, j] * T.exp2(fade * (i if reverse else chunk - 1 - i))
                    for i, j in T.Parallel(dim_k, block_V):
                        state[i, j] *= T.exp2(fade * chunk)
                T.gemm(K_shared, faded, state, transpose_A=True)

    keys, values = (batch, heads, seq, dim_k), (batch, heads, seq, dim_v)

    @T.prim_func
    def plain(
        Q: T.Tensor(keys, dtype),
        K: T.Tensor(keys, dtype),
        V: T.Tensor(values, dtype),
        out: T.Tensor(values, dtype),
    ):
        walk(Q, K, V, None, out)

    @T.prim_func
    def fading(
        Q: T.Tensor(keys, dtype),
        K: T.Tensor(keys, dtype),
        V: T.Tensor(values, dtype),
        rate: T.Tensor((heads,), "float32"),
        out: T.Tensor(values, dtype),
    ):
        walk(Q, K, V, rate, out)

    return fading if decay else plain


def gradients(q: np.ndarray, k: np.ndarray, v: np.ndarray, d_out: np.ndarray, *rate: np.ndarray) -> tuple:
    """Of Q, K and V. Each is linear attention too: of other tensors, or of the reversed sequence."""
    batch, heads, seq, dim_k = q.shape
    size, dim_v = (batch, heads, seq), v.shape[-1]
    decay = bool(rate)
    d_q = linear_attention(*size, dim_v, dim_k, decay)(d_out, v, k, *rate)
    d_k = linear_attention(*size, dim_v, dim_k, decay, True)(v, d_out, q, *rate)
    d_v = linear_attention(*size, dim_k, dim_v, decay, True)(k, q, d_out, *rate)
    return d_q, d_k, d_v


def fading_mask(seq: int, rate: np.ndarray) -> np.ndarray:
    """(heads, seq, seq): ``2 ** (rate (i - j))`` where j <= i."""
    behind = np.arange(seq)[:, None] - np.arange(seq)[None, :]
    return np.where(behind >= 0, np.exp2(rate[:, None, None].astype(np.float64) * np.maximum(behind, 0)), 0)


def reference(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, rate: np.ndarray | None = None, reverse: bool = False
) -> np.ndarray:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    mask = fading_mask(q.shape[2], np.zeros(q.shape[1]) if rate is None else rate)
    return (q @ np.swapaxes(k, -1, -2) * (np.swapaxes(mask, -1, -2) if reverse else mask)) @ v


def gradients_reference(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, d_out: np.ndarray, rate: np.ndarray | None = None
) -> tuple[np.ndarray, ...]:
    q, k, v, d_out = (x.astype(np.float64) for x in (q, k, v, d_out))
    mask = fading_mask(q.shape[2], np.zeros(q.shape[1]) if rate is None else rate)
    scores, d_scores = q @ np.swapaxes(k, -1, -2) * mask, d_out @ np.swapaxes(v, -1, -2) * mask
    return d_scores @ k, np.swapaxes(d_scores, -1, -2) @ q, np.swapaxes(scores, -1, -2) @ d_out


def main() -> None:
    rng = np.random.default_rng(0)
    s = EXAMPLE["linear_attention"]
    q, k = rng.standard_normal((2, s["batch"], s["heads"], s["seq"], s["dim_k"])).astype(np.float16)
    v, d_out = rng.standard_normal((2, s["batch"], s["heads"], s["seq"], s["dim_v"])).astype(np.float16)
    out, wanted = linear_attention(**s)(q, k, v), reference(q, k, v)
    print("forward: largest error", np.abs(out - wanted).max(), "of", np.abs(wanted).max())
    found = gradients(q, k, v, d_out)
    for name, got, wanted in zip("QKV", found, gradients_reference(q, k, v, d_out), strict=True):
        print(f"gradient of {name}: largest error", np.abs(got - wanted).max(), "of", np.abs(wanted).max())


if __name__ == "__main__":
    main()
