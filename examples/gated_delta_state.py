"""Gated delta rule, second step: the state that each chunk begins with, chunk after chunk, and what each row adds to it."""

from __future__ import annotations

import gated_delta_solve as delta
import numpy as np
from gated_delta_solve import LOG2E

import tile_core as tile
import tile_core.language as T

EXAMPLE = {"states": {"batch": 1, "heads": 2, "seq": 256, "dim_k": 64, "dim_v": 64}}


@tile.jit(out_idx=[-2, -1])
def states(
    batch,
    heads,
    seq,
    dim_k,
    dim_v,
    chunk=64,
    block_V=64,
    num_stages=2,
    threads=128,
    dtype="float16",
):
    """``added = U - W S``, then ``S = exp(gates[last]) S + sum of exp(gates[last] - gates[i]) k[i] added[i]^T``.

    The last of the states is the one after the last chunk.
    """
    chunks, block_V = T.ceildiv(seq, chunk), min(block_V, dim_v)

    @T.prim_func
    def kernel(
        K: T.Tensor((batch, heads, seq, dim_k), dtype),
        W: T.Tensor((batch, heads, seq, dim_k), dtype),
        U: T.Tensor((batch, heads, seq, dim_v), dtype),
        gates: T.Tensor((batch, heads, chunks, chunk), "float32"),
        S: T.Tensor((batch, heads, chunks + 1, dim_k, dim_v), dtype),
        added: T.Tensor((batch, heads, seq, dim_v), dtype),
    ):
        with T.Kernel(T.ceildiv(dim_v, block_V), heads, batch, threads=threads) as (bx, h, b):
            K_shared = T.alloc_shared((chunk, dim_k), dtype)
            W_shared = T.alloc_shared((chunk, dim_k), dtype)
            U_shared = T.alloc_shared((chunk, block_V), dtype)
            gates_shared = T.alloc_shared((chunk,), "float32")
            faded = T.alloc_shared((chunk, block_V), dtype)
            state_shared = T.alloc_shared((dim_k, block_V), dtype)
            state = T.alloc_fragment((dim_k, block_V), "float32")
            new = T.alloc_fragment((chunk, block_V), "float32")
            v = bx * block_V
            T.clear(state)
            for c in T.Pipelined(chunks, num_stages=num_stages):
                row = c * chunk
                T.copy(W[b, h, row : row + chunk, :], W_shared)
                T.copy(U[b, h, row : row + chunk, v : v + block_V], U_shared)
                T.copy(K[b, h, row : row + chunk, :], K_shared)
                T.copy(gates[b, h, c, 0], gates_shared)
                T.copy(state, state_shared)
                T.copy(state_shared, S[b, h, c, :, v : v + block_V])
                T.clear(new)
                T.gemm(W_shared, state_shared, new)
                for i, j in T.Parallel(chunk, block_V):
                    new[i, j] = U_shared[i, j] - new[i, j]
                T.copy(new, added[b, h, row : row + chunk, v : v + block_V])
                for i, j in T.Parallel(chunk, block_V):
                    faded[i, j] = new[i, j] * T.exp2((gates_shared[chunk - 1] - gates_shared[i]) * LOG2E)
                for i, j in T.Parallel(dim_k, block_V):
                    state[i, j] *= T.exp2(gates_shared[chunk - 1] * LOG2E)
                T.gemm(K_shared, faded, state, transpose_A=True)
            T.copy(state, S[b, h, chunks, :, v : v + block_V])

    return kernel


def reference(
    k: np.ndarray, w: np.ndarray, u: np.ndarray, gates: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The states and ``added``."""
    seq, chunk = k.shape[2], gates.shape[3]
    k, w, u = (delta.in_chunks(x, chunk) for x in (k, w, u))
    gates = gates.astype(np.float64)
    state = np.zeros((*k.shape[:2], k.shape[-1], u.shape[-1]))
    found, added = [state], []
    for c in range(k.shape[2]):
        last = gates[:, :, c, -1:]
        added.append(u[:, :, c] - w[:, :, c] @ state)
        faded = added[-1] * np.exp(last - gates[:, :, c])[..., None]
        state = np.exp(last)[..., None] * state + np.swapaxes(k[:, :, c], -1, -2) @ faded
        found.append(state)
    return np.stack(found, 2), np.concatenate(added, 2)[:, :, :seq]


def main() -> None:
    s = EXAMPLE["states"]
    k, v, beta, gates = delta.rows(np.random.default_rng(0), **s)
    w, u = (x.astype(np.float16) for x in delta.reference(k, v, beta, gates))
    found, wanted = states(**s)(k, w, u, gates), reference(k, w, u, gates)
    for name, x, y in zip(("states", "added"), found, wanted, strict=True):
        print(f"{name}: largest error", np.abs(x - y).max(), "of", np.abs(y).max())


if __name__ == "__main__":
    main()
