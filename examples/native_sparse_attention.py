"""Native sparse attention, forward, of the selected blocks: each query and head of keys has a list of blocks of keys to look at.

The query heads that share keys are the rows of a tile. A query sees keys up to its own place; the number -1 in a list is no block.
"""

from __future__ import annotations

import numpy as np
from attention_variants import is_hidden, weighted
from online_softmax import LOG2E, finish, fold, running, start

import tile_core as tile
import tile_core.language as T

EXAMPLE = {"selected": {"batch": 1, "seq": 128, "heads": 16, "groups": 16, "dim": 64, "selected": 2}}


@tile.jit(out_idx=[-2, -1])
def selected(
    batch,
    seq,
    heads,
    groups,
    dim,
    selected,
    block=64,
    num_stages=2,
    threads=128,
    dtype="float16",
):
    scale = (1.0 / dim) ** 0.5 * LOG2E
    rows = T.ceildiv(groups, 16) * 16
    q, kv = (batch, seq, heads, dim), (batch, seq, heads // groups, dim)

    @T.prim_func
    def kernel(
        Q: T.Tensor(q, dtype),
        K: T.Tensor(kv, dtype),
        V: T.Tensor(kv, dtype),
        blocks: T.Tensor((batch, seq, heads // groups, selected), "int32"),
        Output: T.Tensor(q, dtype),
        Lse: T.Tensor(q[:3], "float32"),
    ):
        with T.Kernel(heads // groups, seq, batch, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((rows, dim), dtype)
            K_shared = T.alloc_shared((block, dim), dtype)
            V_shared = T.alloc_shared((block, dim), dtype)
            scores = T.alloc_fragment((rows, block), "float32")
            weights = T.alloc_fragment((rows, block), dtype)
            acc = T.alloc_fragment((rows, dim), "float32")
            lse = T.alloc_fragment((rows,), "float32")
            state = running(rows)
            T.copy(Q[bz, by, bx * groups : bx * groups + rows, :], Q_shared)
            T.fill(acc, 0)
            start(state)
            for n in T.Pipelined(selected, num_stages=num_stages):
                number = blocks[bz, by, bx, n]
                first = T.max(number, 0) * block
                T.copy(K[bz, first : first + block, bx, :], K_shared)
                T.gemm(Q_shared, K_shared, scores, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(rows, block):
                    hidden = number < 0 or is_hidden(first + j, by, seq, True, scores[i, j])
                    scores[i, j] = T.if_then_else(hidden, -T.infinity("float32"), scores[i, j])
                fold(state, scores, weights, acc, scale)
                T.copy(V[bz, first : first + block, bx, :], V_shared)
                T.gemm(weights, V_shared, acc)
            finish(state, acc, lse, scale)
            for i, d in T.Parallel(rows, dim):
                if i < groups:
                    Output[bz, by, bx * groups + i, d] = acc[i, d]
            for i in T.Parallel(rows):
                if i < groups:
                    Lse[bz, by, bx * groups + i] = lse[i]

    return kernel


def reference(q, k, v, blocks, block=64) -> tuple[np.ndarray, np.ndarray]:
    _, seq, heads, dim = q.shape
    groups = heads // k.shape[2]
    q, k, v = (np.swapaxes(x, 1, 2).astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, groups, axis=1) for x in (k, v))
    of_key = np.arange(seq) // block
    seen = (blocks[..., None] == of_key).any(-2)  # (batch, seq, heads of keys, key)
    seen = np.repeat(np.swapaxes(seen, 1, 2), groups, axis=1) & (np.arange(seq) <= np.arange(seq)[:, None])
    out, lse = weighted(np.where(seen, q @ np.swapaxes(k, -1, -2) / np.sqrt(dim), -np.inf), v)
    return np.swapaxes(out, 1, 2), np.swapaxes(lse, 1, 2)


def chosen(rng: np.random.Generator, batch: int, seq: int, heads: int, count: int, block: int) -> np.ndarray:
    """Lists without repetition, of blocks up to the query's own; -1 where there are not enough."""
    out = np.full((batch, seq, heads, count), -1, np.int32)
    for at in np.ndindex(batch, seq, heads):
        found = rng.permutation(at[1] // block + 1)[:count]
        out[at][: len(found)] = found
    return out


def main() -> None:
    rng = np.random.default_rng(0)
    sizes = EXAMPLE["selected"]
    q = rng.standard_normal((sizes["batch"], sizes["seq"], sizes["heads"], sizes["dim"])).astype(np.float16)
    kv = (2, sizes["batch"], sizes["seq"], sizes["heads"] // sizes["groups"], sizes["dim"])
    k, v = rng.standard_normal(kv).astype(np.float16)
    blocks = chosen(rng, sizes["batch"], sizes["seq"], kv[3], sizes["selected"], 64)
    out, lse = selected(**sizes)(q, k, v, blocks)
    want, want_lse = reference(q, k, v, blocks)
    print("largest error", np.abs(out - want).max(), "of the LSE", np.abs(lse - want_lse).max())


if __name__ == "__main__":
    main()
