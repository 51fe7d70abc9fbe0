"""Gated delta rule, last step: the outputs of each chunk, from the state that it begins with and what its rows add."""

from __future__ import annotations

import gated_delta_solve as delta
import gated_delta_state
import numpy as np
from gated_delta_solve import LOG2E

import tile_core as tile
import tile_core.language as T

EXAMPLE = {"outputs": {"batch": 1, "heads": 2, "seq": 256, "dim_k": 64, "dim_v": 64}}


@tile.jit(out_idx=[-1])
def outputs(batch, heads, seq, dim_k, dim_v, chunk=64, block_V=128, threads=128, dtype="float16"):
    """``scale (exp(gates[i]) q[i] S + sum over j <= i of exp(gates[i] - gates[j]) (q[i] k[j]) added[j])``."""
    chunks, block_V, scale = T.ceildiv(seq, chunk), min(block_V, dim_v), dim_k**-0.5

    @T.prim_func
    def kernel(
        Q: T.Tensor((batch, heads, seq, dim_k), dtype),
        K: T.Tensor((batch, heads, seq, dim_k), dtype),
        added: T.Tensor((batch, heads, seq, dim_v), dtype),
        S: T.Tensor((batch, heads, chunks + 1, dim_k, dim_v), dtype),
        gates: T.Tensor((batch, heads, chunks, chunk), "float32"),
        out: T.Tensor((batch, heads, seq, dim_v), dtype),
    ):
        with T.Kernel(T.ceildiv(dim_v, block_V), chunks, batch * heads, threads=threads) as (bx, c, bz):
            b, h, row, v = bz // heads, bz % heads, c * chunk, bx * block_V
            Q_shared = T.alloc_shared((chunk, dim_k), dtype)
            K_shared = T.alloc_shared((chunk, dim_k), dtype)
            added_shared = T.alloc_shared((chunk, block_V), dtype)
            state_shared = T.alloc_shared((dim_k, block_V), dtype)
            columns = T.alloc_shared((chunk,), "float32")
            scores = T.alloc_fragment((chunk, chunk), "float32")
            weights = T.alloc_fragment((chunk, chunk), dtype)
            acc = T.alloc_fragment((chunk, block_V), "float32")
            T.copy(Q[b, h, row : row + chunk, :], Q_shared)
            T.copy(S[b, h, c, :, v : v + block_V], state_shared)
            T.copy(K[b, h, row : row + chunk, :], K_shared)
            T.copy(added[b, h, row : row + chunk, v : v + block_V], added_shared)
            T.copy(gates[b, h, c, 0], columns)
            T.clear(acc)
            T.gemm(Q_shared, state_shared, acc)
            T.clear(scores)
            T.gemm(Q_shared, K_shared, scores, transpose_B=True)
            for i, j in T.Parallel(chunk, block_V):
                acc[i, j] *= T.exp2(columns[i] * LOG2E)
            for i, j in T.Parallel(chunk, chunk):
                weight = T.exp2((columns[i] - columns[j]) * LOG2E)
                weights[i, j] = T.if_then_else(i >= j, scores[i, j] * weight, 0)
            T.gemm(weights, added_shared, acc)
            for i, j in T.Parallel(chunk, block_V):
                acc[i, j] *= scale
            T.copy(acc, out[b, h, row : row + chunk, v : v + block_V])

    return kernel


def reference(
    q: np.ndarray, k: np.ndarray, added: np.ndarray, states: np.ndarray, gates: np.ndarray
) -> np.ndarray:
    seq, chunk = q.shape[2], gates.shape[3]
    q, k, added = (delta.in_chunks(x, chunk) for x in (q, k, added))
    past = np.exp(gates.astype(np.float64))[..., None] * (q @ states[:, :, :-1].astype(np.float64))
    own = (delta.fading(gates) * (q @ np.swapaxes(k, -1, -2))) @ added
    return ((past + own) * q.shape[-1] ** -0.5).reshape(*q.shape[:2], -1, added.shape[-1])[:, :, :seq]


def recurrence(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, beta: np.ndarray, gates: np.ndarray
) -> np.ndarray:
    """All three steps, row by row: ``S = exp(gate) S; S += beta k (v - S^T k)^T; out = scale S^T q``."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    steps = np.diff(gates.astype(np.float64), axis=-1, prepend=0).reshape(*q.shape[:2], -1)
    state, out = np.zeros((*q.shape[:2], q.shape[-1], v.shape[-1])), []
    for t in range(q.shape[2]):
        state = state * np.exp(steps[:, :, t])[..., None, None]
        missing = v[:, :, t] - np.einsum("bhkv,bhk->bhv", state, k[:, :, t])
        state += (beta[:, :, t, None] * k[:, :, t])[..., None] * missing[..., None, :]
        out.append(np.einsum("bhkv,bhk->bhv", state, q[:, :, t]))
    return np.stack(out, 2) * q.shape[-1] ** -0.5


def main() -> None:
    rng = np.random.default_rng(0)
    s = EXAMPLE["outputs"]
    k, v, beta, gates = delta.rows(rng, **s)
    q = rng.standard_normal(k.shape).astype(np.float16)
    w, u = delta.solve(**s)(k, v, beta, gates)
    states, added = gated_delta_state.states(**s)(k, w, u, gates)
    out, wanted = outputs(**s)(q, k, added, states, gates), recurrence(q, k, v, beta, gates)
    print("all three steps: largest error", np.abs(out - wanted).max(), "of", np.abs(wanted).max())


if __name__ == "__main__":
    main()
