"""Mamba-2, second half: the outputs of each chunk, from the state that it begins with and from its own inputs."""

from __future__ import annotations

import numpy as np
from mamba_chunk_state import LOG2E, chunk_state, in_chunks, state_passing, steps

import tile_core as tile
import tile_core.language as T

EXAMPLE = {
    "chunk_scan": {
        "batch": 1,
        "seqlen": 256,
        "heads": 4,
        "groups": 1,
        "chunk": 128,
        "dim": 64,
        "state": 64,
    },
    "chunk_scores": {"batch": 1, "seqlen": 256, "groups": 1, "chunk": 128, "state": 64},
}


@tile.jit(out_idx=[-1])
def chunk_scan(
    batch,
    seqlen,
    heads,
    groups,
    chunk,
    dim,
    state,
    fused=False,
    block_M=64,
    block_N=64,
    num_stages=2,
    threads=128,
    dtype="float16",
):
    """``out[l] = exp(decay[l]) C[l] state^T + sum over s <= l of (C[l] B[s]) exp(decay[l] - decay[s]) dt[s] x[s] + D x[l]``.

    ``fused``: the first tensor is B, and C B^T is made here, once for each head; otherwise it is C B^T, made once for each group.
    """
    chunks, block_M, block_N = T.ceildiv(seqlen, chunk), min(block_M, chunk), min(block_N, chunk)
    if chunk % block_M or chunk % block_N:
        raise ValueError(f"a chunk of {chunk} rows is not a whole number of tiles of {block_M} and {block_N}")
    down = chunk // block_M

    @T.prim_func
    def kernel(
        B: T.Tensor(
            (batch, seqlen, groups, state) if fused else (batch, chunks, groups, chunk, chunk), dtype
        ),
        x: T.Tensor((batch, seqlen, heads, dim), dtype),
        dt: T.Tensor((batch, heads, chunks, chunk), "float32"),
        decay: T.Tensor((batch, heads, chunks, chunk), "float32"),
        C: T.Tensor((batch, seqlen, groups, state), dtype),
        states: T.Tensor((batch, chunks, heads, dim, state), dtype),
        D: T.Tensor((heads,), "float32"),
        out: T.Tensor((batch, seqlen, heads, dim), dtype),
    ):
        with T.Kernel(heads, chunks * down, batch, threads=threads) as (h, by, b):
            c, top, group = by // down, by % down * block_M, h // (heads // groups)
            first = c * chunk + top
            C_shared = T.alloc_shared((block_M, state), dtype)
            state_shared = T.alloc_shared((dim, state), dtype)
            B_shared = T.alloc_shared((block_N, state) if fused else (block_M, block_N), dtype)
            x_shared = T.alloc_shared((block_N, dim), dtype)
            dt_shared = T.alloc_shared((block_N,), "float32")
            decay_shared = T.alloc_shared((block_N,), "float32")
            rows_shared = T.alloc_shared((block_M,), "float32")
            own_shared = T.alloc_shared((block_M, dim), dtype)
            rows = T.alloc_fragment((block_M,), "float32")
            fading = T.alloc_fragment((block_M, block_N), "float32")
            scores = T.alloc_fragment((block_M, block_N), "float32" if fused else dtype)
            weights = T.alloc_fragment((block_M, block_N), dtype)
            own = T.alloc_fragment((block_M, dim), dtype)
            acc = T.alloc_fragment((block_M, dim), "float32")
            T.copy(C[b, first : first + block_M, group, :], C_shared)
            T.copy(states[b, c, h, :, :], state_shared)
            T.copy(decay[b, h, c, top], rows_shared)
            T.copy(x[b, first : first + block_M, h, :], own_shared)
            for i in T.Parallel(block_M):
                rows[i] = rows_shared[i] * LOG2E
            T.clear(acc)
            T.gemm(C_shared, state_shared, acc, transpose_B=True)
            for i, j in T.Parallel(block_M, dim):
                acc[i, j] *= T.exp2(rows[i])
            for k in T.Pipelined(T.ceildiv(top + block_M, block_N), num_stages=num_stages):
                column = k * block_N
                start = c * chunk + column
                T.copy(x[b, start : start + block_N, h, :], x_shared)
                T.copy(dt[b, h, c, column], dt_shared)
                T.copy(decay[b, h, c, column], decay_shared)
                if fused:
                    T.copy(B[b, start : start + block_N, group, :], B_shared)
                    T.clear(scores)
                    T.gemm(C_shared, B_shared, scores, transpose_B=True)
                else:
                    T.copy(B[b, c, group, top : top + block_M, column : column + block_N], B_shared)
                    T.copy(B_shared, scores)
                for i, j in T.Parallel(block_M, block_N):
                    fading[i, j] = rows[i] - decay_shared[j] * LOG2E
                for i, j in T.Parallel(block_M, block_N):
                    fading[i, j] = T.if_then_else(top + i < column + j, -T.infinity("float32"), fading[i, j])
                for i, j in T.Parallel(block_M, block_N):
                    weights[i, j] = scores[i, j] * dt_shared[j] * T.__exp2(fading[i, j])
                T.gemm(weights, x_shared, acc)
            T.copy(own_shared, own)
            for i, j in T.Parallel(block_M, dim):
                acc[i, j] += D[h] * own[i, j]
            T.copy(acc, out[b, first : first + block_M, h, :])

    return kernel


@tile.jit(out_idx=[-1])
def chunk_scores(
    batch, seqlen, groups, chunk, state, block_M=64, block_N=64, block_K=64, dtype="float16", threads=128
):
    """C B^T of each chunk and group at and below the diagonal; zeros above it."""
    chunks, block_M, block_N = T.ceildiv(seqlen, chunk), min(block_M, chunk), min(block_N, chunk)
    if chunk % block_M or chunk % block_N:
        raise ValueError(f"a chunk of {chunk} rows is not a whole number of tiles of {block_M} and {block_N}")
    down = chunk // block_M

    @T.prim_func
    def kernel(
        C: T.Tensor((batch, seqlen, groups, state), dtype),
        B: T.Tensor((batch, seqlen, groups, state), dtype),
        out: T.Tensor((batch, chunks, groups, chunk, chunk), dtype),
    ):
        with T.Kernel(chunk // block_N, down * groups, batch * chunks, threads=threads) as (bx, by, bz):
            b, c, g, top, left = bz // chunks, bz % chunks, by // down, by % down * block_M, bx * block_N
            C_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K), dtype)
            acc = T.alloc_fragment((block_M, block_N), "float32")
            row, column = c * chunk + top, c * chunk + left
            T.clear(acc)
            for k in T.Pipelined(
                T.if_then_else(left < top + block_M, T.ceildiv(state, block_K), 0), num_stages=2
            ):
                T.copy(C[b, row : row + block_M, g, k * block_K : (k + 1) * block_K], C_shared)
                T.copy(B[b, column : column + block_N, g, k * block_K : (k + 1) * block_K], B_shared)
                T.gemm(C_shared, B_shared, acc, transpose_B=True)
            for i, j in T.Parallel(block_M, block_N):
                acc[i, j] = T.if_then_else(top + i >= left + j, acc[i, j], 0)
            T.copy(acc, out[b, c, g, top : top + block_M, left : left + block_N])

    return kernel


def scores(c: np.ndarray, b: np.ndarray, chunk: int) -> np.ndarray:
    """What ``chunk_scores`` gives."""
    c, b = (in_chunks(v.astype(np.float64), chunk) for v in (c, b))
    return np.tril(np.einsum("bclgn,bcsgn->bcgls", c, b, optimize=True))


def reference(
    b: np.ndarray,
    x: np.ndarray,
    dt: np.ndarray,
    decay: np.ndarray,
    c: np.ndarray,
    states: np.ndarray,
    d: np.ndarray,
) -> np.ndarray:
    """``b``: B, or the products of ``scores``."""
    seqlen, heads, chunk = x.shape[1], dt.shape[1], dt.shape[3]
    products = np.tril(b.astype(np.float64)) if b.ndim == 5 else scores(c, b, chunk)
    products = np.repeat(products, heads // products.shape[2], axis=2)
    inputs, decay = in_chunks(x.astype(np.float64), chunk), decay.astype(np.float64)
    fading = np.exp(np.minimum(decay[..., :, None] - decay[..., None, :], 0))
    own = np.einsum("bchls,bhcls,bhcs,bcshp->bclhp", products, fading, dt, inputs, optimize=True)
    gates = np.repeat(in_chunks(c.astype(np.float64), chunk), heads // c.shape[2], axis=3)
    past = np.einsum("bhcl,bclhn,bchpn->bclhp", np.exp(decay), gates, states, optimize=True)
    out = own + past + inputs * d[:, None]
    return out.reshape(len(x), -1, *x.shape[2:])[:, :seqlen]


def recurrence(
    x: np.ndarray, dt: np.ndarray, decay: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray
) -> np.ndarray:
    """The same step by step: ``h = exp(dt A) h + dt x B^T; y = h C + D x``."""
    batch, seqlen, heads, dim = x.shape
    step = np.diff(decay.astype(np.float64), axis=-1, prepend=0).reshape(batch, heads, -1)
    dt, h, out = dt.reshape(batch, heads, -1), np.zeros((batch, heads, dim, b.shape[3])), []
    b, c = (np.repeat(v.astype(np.float64), heads // v.shape[2], axis=2) for v in (b, c))
    for t in range(seqlen):
        now = x[:, t].astype(np.float64)
        h = np.exp(step[:, :, t])[..., None, None] * h
        h += (dt[:, :, t, None] * now)[..., None] * b[:, t, :, None]
        out.append(np.einsum("bhpn,bhn->bhp", h, c[:, t]) + d[:, None] * now)
    return np.stack(out, 1)


def main() -> None:
    rng = np.random.default_rng(0)
    s = EXAMPLE["chunk_scan"]
    batch, seqlen, heads, groups, chunk, dim, state = s.values()
    dt, decay = steps(rng, batch, seqlen, heads, chunk)
    x = rng.standard_normal((batch, seqlen, heads, dim)).astype(np.float16)
    b, c = (rng.standard_normal((batch, seqlen, groups, state)).astype(np.float16) for _ in range(2))
    d = rng.standard_normal(heads).astype(np.float32)
    added = chunk_state(**s)(b, x, dt, decay)
    before = state_passing(batch, seqlen // chunk, heads, chunk, dim, state)(added, decay)
    products = chunk_scores(**EXAMPLE["chunk_scores"])(c, b)
    wanted = recurrence(x, dt, decay, b, c, d)
    for fused in (False, True):
        out = chunk_scan(**s, fused=fused)(b if fused else products, x, dt, decay, c, before, d)
        print(f"fused={fused}: largest error", np.abs(out - wanted).max(), "of", np.abs(wanted).max())


if __name__ == "__main__":
    main()
