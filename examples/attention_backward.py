"""Flash attention, backward: the gradients of Q, K and V. Causal or not; grouped heads.

Three launches: what each row's gradient has in common (delta); then for each tile of keys a walk over the queries; then dQ,
which the tiles of keys have summed atomically in float32, in the wanted type.
"""

from __future__ import annotations

import numpy as np
from attention_variants import attention, is_hidden
from online_softmax import LOG2E

import tile_core as tile
import tile_core.language as T

STATEMENTS = 16  # of a step of the walk over the queries
EXAMPLE = {
    "backward": {"batch": 1, "heads": 4, "seq_q": 128, "seq_kv": 128, "dim": 64, "groups": 2, "causal": True}
}


@T.macro
def prepare(Output, dOutput, Lse, Delta, Shift, dQ_sum, block):
    """Each row's sum of Output * dOutput, what its scores are shifted by, and zeros for what is added to."""
    batch, heads, seq, dim = Output.shape
    with T.Kernel(T.ceildiv(seq, block), heads, batch, threads=128) as (bx, by, bz):
        out = T.alloc_fragment((block, dim), Output.dtype)
        grad = T.alloc_fragment((block, dim), Output.dtype)
        products = T.alloc_fragment((block, dim), "float32")
        delta = T.alloc_fragment((block,), "float32")
        shift = T.alloc_fragment((block,), "float32")
        zeros = T.alloc_fragment((block, dim), "float32")
        T.clear(zeros)
        T.copy(zeros, dQ_sum[bz, by, bx * block : (bx + 1) * block, :])
        T.copy(Output[bz, by, bx * block : (bx + 1) * block, :], out)
        T.copy(dOutput[bz, by, bx * block : (bx + 1) * block, :], grad)
        for i, d in T.Parallel(block, dim):
            products[i, d] = T.cast(out[i, d], "float32") * T.cast(grad[i, d], "float32")
        T.reduce_sum(products, delta, dim=1)
        T.copy(delta, Delta[bz, by, bx * block : (bx + 1) * block])
        T.copy(Lse[bz, by, bx * block : (bx + 1) * block], shift)
        for i in T.Parallel(block):
            shift[i] *= LOG2E
        T.copy(shift, Shift[bz, by, bx * block : (bx + 1) * block])


@T.macro
def scaled(source, target, factor, block):
    batch, heads, seq, dim = source.shape
    with T.Kernel(T.ceildiv(seq, block), heads, batch, threads=128) as (bx, by, bz):
        rows = T.alloc_fragment((block, dim), "float32")
        T.copy(source[bz, by, bx * block : (bx + 1) * block, :], rows)
        for i, d in T.Parallel(block, dim):
            rows[i, d] *= factor
        T.copy(rows, target[bz, by, bx * block : (bx + 1) * block, :])


@tile.jit(out_idx=[-3, -2, -1])
def backward(
    batch,
    heads,
    seq_q,
    seq_kv,
    dim,
    groups=1,
    causal=False,
    block_M=64,
    block_N=64,
    num_stages=2,
    threads=128,
    dtype="float16",
):
    scale, past = (1.0 / dim) ** 0.5, seq_kv - seq_q
    q, kv = (batch, heads, seq_q, dim), (batch, heads // groups, seq_kv, dim)
    blocks_q = T.ceildiv(seq_q, block_M)

    @T.prim_func
    def kernel(
        Q: T.Tensor(q, dtype),
        K: T.Tensor(kv, dtype),
        V: T.Tensor(kv, dtype),
        Output: T.Tensor(q, dtype),
        dOutput: T.Tensor(q, dtype),
        Lse: T.Tensor(q[:3], "float32"),
        dQ: T.Tensor(q, dtype),
        dK: T.Tensor(kv, dtype),
        dV: T.Tensor(kv, dtype),
    ):
        Delta = T.alloc_global(q[:3], "float32")
        Shift = T.alloc_global(q[:3], "float32")
        dQ_sum = T.alloc_global(q, "float32")
        prepare(Output, dOutput, Lse, Delta, Shift, dQ_sum, 32)
        with T.Kernel(T.ceildiv(seq_kv, block_N), heads // groups, batch, threads=threads) as (bx, by, bz):
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            Q_shared = T.alloc_shared((block_M, dim), dtype)
            dO_shared = T.alloc_shared((block_M, dim), dtype)
            shift = T.alloc_shared((block_M,), "float32")
            delta = T.alloc_shared((block_M,), "float32")
            dS_shared = T.alloc_shared((block_N, block_M), dtype)
            # keys are rows here: weights and their gradients are then left operands as they are
            scores = T.alloc_fragment((block_N, block_M), "float32")
            grads = T.alloc_fragment((block_N, block_M), "float32")
            weights = T.alloc_fragment((block_N, block_M), dtype)
            narrow = T.alloc_fragment((block_N, block_M), dtype)
            dQ_part = T.alloc_fragment((block_M, dim), "float32")
            dK_acc = T.alloc_fragment((block_N, dim), "float32")
            dV_acc = T.alloc_fragment((block_N, dim), "float32")
            T.copy(K[bz, by, bx * block_N : (bx + 1) * block_N, :], K_shared)
            T.copy(V[bz, by, bx * block_N : (bx + 1) * block_N, :], V_shared)
            T.clear(dK_acc)
            T.clear(dV_acc)
            first = T.min(T.max(bx * block_N - past, 0) // block_M, blocks_q) if causal else 0
            # in the order in which they are written: what one group of threads computes lies under products of another
            pinned = {"order": range(STATEMENTS), "stage": [0] * STATEMENTS}
            for n in T.Pipelined(groups * (blocks_q - first), num_stages=num_stages, **pinned):
                head = by * groups + n % groups
                row = (first + n // groups) * block_M
                T.copy(Q[bz, head, row : row + block_M, :], Q_shared)
                T.copy(Shift[bz, head, row : row + block_M], shift)
                T.gemm(
                    K_shared,
                    Q_shared,
                    scores,
                    transpose_B=True,
                    policy=T.GemmWarpPolicy.FullRow,
                    clear_accum=True,
                )
                for i, j in T.Parallel(block_N, block_M):
                    scores[i, j] = T.__exp2(scores[i, j] * (scale * LOG2E) - shift[j])
                if (bx + 1) * block_N > (T.min(row + past + 1, seq_kv) if causal else seq_kv):
                    for i, j in T.Parallel(block_N, block_M):
                        hidden = is_hidden(bx * block_N + i, row + j + past, seq_kv, causal, 0)
                        scores[i, j] = T.if_then_else(hidden, 0.0, scores[i, j])
                T.copy(dOutput[bz, head, row : row + block_M, :], dO_shared)
                T.copy(Delta[bz, head, row : row + block_M], delta)
                T.copy(scores, weights)
                T.gemm(
                    V_shared,
                    dO_shared,
                    grads,
                    transpose_B=True,
                    policy=T.GemmWarpPolicy.FullRow,
                    clear_accum=True,
                )
                T.gemm(weights, dO_shared, dV_acc, policy=T.GemmWarpPolicy.FullRow)
                for i, j in T.Parallel(block_N, block_M):
                    grads[i, j] = scores[i, j] * (grads[i, j] - delta[j])
                T.copy(grads, narrow)
                T.copy(narrow, dS_shared)
                T.gemm(dS_shared, K_shared, dQ_part, transpose_A=True, clear_accum=True)
                T.gemm(narrow, Q_shared, dK_acc, policy=T.GemmWarpPolicy.FullRow)
                T.atomic_add(dQ_sum[bz, head, row : row + block_M, :], dQ_part)
            for i, d in T.Parallel(block_N, dim):
                dK_acc[i, d] *= scale
            T.copy(dK_acc, dK[bz, by, bx * block_N : (bx + 1) * block_N, :])
            T.copy(dV_acc, dV[bz, by, bx * block_N : (bx + 1) * block_N, :])
        scaled(dQ_sum, dQ, scale, 32)

    return kernel


def reference(q, k, v, output, d_output, lse, causal=False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    groups, scale = q.shape[1] // k.shape[1], 1 / np.sqrt(q.shape[-1])
    q, k, v, output, d_output = (x.astype(np.float64) for x in (q, k, v, output, d_output))
    full_k, full_v = (np.repeat(x, groups, axis=1) for x in (k, v))
    rows, columns = q.shape[2], k.shape[2]
    hidden = np.arange(columns)[None, :] > np.arange(rows)[:, None] + (columns - rows if causal else columns)
    scores = np.where(hidden, -np.inf, q @ np.swapaxes(full_k, -1, -2) * scale)
    weights = np.exp(scores - np.where(np.isfinite(lse), lse, 0)[..., None])
    delta = (output * d_output).sum(-1, keepdims=True)
    grads = weights * (d_output @ np.swapaxes(full_v, -1, -2) - delta) * scale

    def of_groups(x: np.ndarray) -> np.ndarray:
        return x.reshape(k.shape[0], k.shape[1], groups, *k.shape[2:]).sum(2)

    d_k, d_v = np.swapaxes(grads, -1, -2) @ q, np.swapaxes(weights, -1, -2) @ d_output
    return grads @ full_k, of_groups(d_k), of_groups(d_v)


def main() -> None:
    rng = np.random.default_rng(0)
    sizes = EXAMPLE["backward"]
    shape = (sizes["batch"], sizes["heads"], sizes["seq_q"], sizes["dim"])
    q, grad = rng.standard_normal((2, *shape)).astype(np.float16)
    k, v = rng.standard_normal((2, shape[0], shape[1] // sizes["groups"], *shape[2:])).astype(np.float16)
    out, lse = attention(**sizes)(q, k, v)
    got = backward(**sizes)(q, k, v, out, grad, lse)
    want = reference(q, k, v, out, grad, lse, sizes["causal"])
    print("largest errors", *(f"d{n}: {np.abs(x - y).max()}" for n, x, y in zip("QKV", got, want)))


if __name__ == "__main__":
    main()
