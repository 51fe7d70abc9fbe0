"""Mamba-2, first half: what each chunk of a sequence adds to the state, and the state that each chunk begins with."""

from __future__ import annotations

import math

import numpy as np

import tile_core as tile
import tile_core.language as T

EXAMPLE = {
    "chunk_state": {
        "batch": 1,
        "seqlen": 256,
        "heads": 4,
        "groups": 1,
        "chunk": 128,
        "dim": 64,
        "state": 64,
    },
    "state_passing": {"batch": 1, "chunks": 2, "heads": 4, "chunk": 128, "dim": 64, "state": 64},
}
LOG2E = math.log2(math.e)


@tile.jit(out_idx=[-1])
def chunk_state(
    batch,
    seqlen,
    heads,
    groups,
    chunk,
    dim,
    state,
    block_M=64,
    block_N=128,
    block_K=64,
    num_stages=3,
    threads=128,
    registers=False,
    dtype="float16",
):
    """Sum over the rows l of a chunk of ``exp(decay[last] - decay[l]) dt[l] x[l] B[l]^T``.

    ``registers``: the weighted rows of x are an operand in registers, the other way round; otherwise one in shared memory.
    """
    chunks, block_K = T.ceildiv(seqlen, chunk), min(block_K, chunk)
    block_M, block_N = min(block_M, dim), min(block_N, state)
    if chunk % block_K:
        raise ValueError(f"a chunk of {chunk} rows is not a whole number of tiles of {block_K}")
    across = T.ceildiv(state, block_N)

    @T.prim_func
    def kernel(
        B: T.Tensor((batch, seqlen, groups, state), dtype),
        x: T.Tensor((batch, seqlen, heads, dim), dtype),
        dt: T.Tensor((batch, heads, chunks, chunk), "float32"),
        decay: T.Tensor((batch, heads, chunks, chunk), "float32"),
        states: T.Tensor((batch, chunks, heads, dim, state), dtype),
    ):
        with T.Kernel(T.ceildiv(dim, block_M) * across, heads, batch * chunks, threads=threads) as (
            bx,
            h,
            bz,
        ):
            m, n, b, c = bx // across * block_M, bx % across * block_N, bz // chunks, bz % chunks
            x_shared = T.alloc_shared((block_K, block_M), dtype)
            if registers:
                scaled = T.alloc_fragment((block_M, block_K), dtype)
            else:
                scaled = T.alloc_shared((block_K, block_M), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            dt_shared = T.alloc_shared((block_K,), "float32")
            decay_shared = T.alloc_shared((block_K,), "float32")
            weight = T.alloc_shared((block_K,), "float32")
            acc = T.alloc_fragment((block_M, block_N), "float32")
            last = decay[b, h, c, chunk - 1]
            T.clear(acc)
            for k in T.Pipelined(chunk // block_K, num_stages=num_stages):
                row = c * chunk + k * block_K
                T.copy(x[b, row : row + block_K, h, m : m + block_M], x_shared)
                T.copy(B[b, row : row + block_K, h // (heads // groups), n : n + block_N], B_shared)
                T.copy(dt[b, h, c, k * block_K], dt_shared)
                T.copy(decay[b, h, c, k * block_K], decay_shared)
                for i in T.Parallel(block_K):
                    weight[i] = T.exp2((last - decay_shared[i]) * LOG2E) * dt_shared[i]
                if registers:
                    for i, j in T.Parallel(block_M, block_K):
                        scaled[i, j] = x_shared[j, i] * weight[j]
                else:
                    for i, j in T.Parallel(block_K, block_M):
                        scaled[i, j] = x_shared[i, j] * weight[i]
                T.gemm(scaled, B_shared, acc, transpose_A=not registers)
            T.copy(acc, states[b, c, h, m : m + block_M, n : n + block_N])

    return kernel


@tile.jit(out_idx=[-1])
def state_passing(batch, chunks, heads, chunk, dim, state, block=1024, dtype="float16"):
    """The state before each chunk: that before the last one, decayed, and what the last one added."""

    @T.prim_func
    def kernel(
        states: T.Tensor((batch, chunks, heads, dim, state), dtype),
        decay: T.Tensor((batch, heads, chunks, chunk), "float32"),
        before: T.Tensor((batch, chunks, heads, dim, state), dtype),
    ):
        with T.Kernel(T.ceildiv(dim * state, block), heads, batch, threads=128) as (bx, h, b):
            added = T.reshape(states, (batch, chunks, heads, dim * state))
            out = T.reshape(before, (batch, chunks, heads, dim * state))
            part = T.alloc_fragment((block,), dtype)
            total = T.alloc_fragment((block,), "float32")
            T.clear(total)
            for c in T.serial(chunks):
                T.copy(total, out[b, c, h, bx * block])
                T.copy(added[b, c, h, bx * block], part)
                for i in T.Parallel(block):
                    total[i] = total[i] * T.exp2(decay[b, h, c, chunk - 1] * LOG2E) + part[i]

    return kernel


def in_chunks(a: np.ndarray, chunk: int) -> np.ndarray:
    """(batch, seqlen, ...) as (batch, chunks, chunk, ...), filled with zeros."""
    fill = -a.shape[1] % chunk
    a = np.pad(a, [(0, 0), (0, fill)] + [(0, 0)] * (a.ndim - 2))
    return a.reshape(a.shape[0], -1, chunk, *a.shape[2:])


def reference(b: np.ndarray, x: np.ndarray, dt: np.ndarray, decay: np.ndarray) -> np.ndarray:
    heads, chunk = dt.shape[1], dt.shape[3]
    b, x = (in_chunks(v.astype(np.float64), chunk) for v in (b, x))
    weight = np.exp(decay[..., -1:] - decay.astype(np.float64)) * dt
    b = np.repeat(b, heads // b.shape[3], axis=3)
    return np.einsum("bhcl,bclhp,bclhn->bchpn", weight, x, b, optimize=True)


def passing_reference(states: np.ndarray, decay: np.ndarray) -> np.ndarray:
    total, out = np.zeros_like(states[:, 0], np.float64), []
    for c in range(states.shape[1]):
        out.append(total)
        total = total * np.exp(decay[:, :, c, -1].astype(np.float64))[..., None, None] + states[:, c]
    return np.stack(out, 1)


def steps(
    rng: np.random.Generator, batch: int, seqlen: int, heads: int, chunk: int
) -> tuple[np.ndarray, np.ndarray]:
    """Random step sizes dt, and the running sum of dt A in each chunk; behind the sequence's end dt is 0."""
    dt = in_chunks(rng.uniform(0.01, 0.2, (batch, seqlen, heads)).astype(np.float32), chunk)
    dt = np.ascontiguousarray(dt.transpose(0, 3, 1, 2))
    rate = -rng.uniform(0.5, 2, (heads, 1, 1)).astype(np.float32)
    return dt, np.cumsum(dt * rate, axis=-1, dtype=np.float32)


def main() -> None:
    rng = np.random.default_rng(0)
    s = EXAMPLE["chunk_state"]
    dt, decay = steps(rng, s["batch"], s["seqlen"], s["heads"], s["chunk"])
    x = rng.standard_normal((s["batch"], s["seqlen"], s["heads"], s["dim"])).astype(np.float16)
    b = rng.standard_normal((s["batch"], s["seqlen"], s["groups"], s["state"])).astype(np.float16)
    states = chunk_state(**s)(b, x, dt, decay)
    print("states of chunks: largest error", np.abs(states - reference(b, x, dt, decay)).max())
    before = state_passing(**EXAMPLE["state_passing"])(states, decay)
    print("states before them: largest error", np.abs(before - passing_reference(states, decay)).max())


if __name__ == "__main__":
    main()
