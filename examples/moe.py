"""A mixture of experts, forward: each expert's rows are gathered from the tokens, pass its gated MLP, and are added up.

The rows (a token and one of its experts each) are sorted by expert. A tile of rows belongs to one expert; tables say to
which, where it begins and where its expert's rows end.
"""

from __future__ import annotations

import numpy as np

import tile_core as tile
import tile_core.language as T

EXAMPLE = {
    "experts_in": {"tokens": 64, "rows": 128, "experts": 4, "tiles": 6, "dim": 64, "hidden": 64},
    "experts_out": {"tokens": 64, "rows": 128, "experts": 4, "tiles": 6, "dim": 64, "hidden": 64},
}
BLOCK_M = 64


@tile.jit(out_idx=[-1])
def experts_in(
    tokens,
    rows,
    experts,
    tiles,
    dim,
    hidden,
    block_M=BLOCK_M,
    block_N=64,
    block_K=64,
    num_stages=3,
    threads=128,
    dtype="float16",
):
    """``out[row] = silu(x gate^T) * (x up^T)`` where x is the row's token, gate and up its expert's."""

    @T.prim_func
    def kernel(
        x: T.Tensor((tokens, dim), dtype),
        gate: T.Tensor((experts, hidden, dim), dtype),
        up: T.Tensor((experts, hidden, dim), dtype),
        token: T.Tensor((rows,), "int32"),
        expert: T.Tensor((tiles,), "int32"),
        first: T.Tensor((tiles,), "int32"),
        end: T.Tensor((tiles,), "int32"),
        out: T.Tensor((rows, hidden), dtype),
    ):
        with T.Kernel(T.ceildiv(hidden, block_N), tiles, threads=threads) as (bx, by):
            x_shared = T.alloc_shared((block_M, block_K), dtype)
            gate_shared = T.alloc_shared((block_N, block_K), dtype)
            up_shared = T.alloc_shared((block_N, block_K), dtype)
            source = T.alloc_shared((block_M,), "int32")
            gated = T.alloc_fragment((block_M, block_N), "float32")
            acc = T.alloc_fragment((block_M, block_N), "float32")
            row, e, n = first[by], expert[by], bx * block_N
            after = first[T.min(by + 1, tiles - 1)]
            T.assume(by + 1 >= tiles or (row <= after and T.min(row + block_M, end[by]) <= after))
            for i in T.Parallel(block_M):
                source[i] = T.if_then_else(row + i < end[by], token[row + i], -1)
            T.clear(gated)
            T.clear(acc)
            for ko in T.Pipelined(T.ceildiv(dim, block_K), num_stages=num_stages):
                for i, j in T.Parallel(block_M, block_K):
                    inside = (source[i] >= 0) and (ko * block_K + j < dim)
                    x_shared[i, j] = T.if_then_else(inside, x[source[i], ko * block_K + j], 0)
                T.copy(gate[e, n : n + block_N, ko * block_K : (ko + 1) * block_K], gate_shared)
                T.copy(up[e, n : n + block_N, ko * block_K : (ko + 1) * block_K], up_shared)
                T.gemm(x_shared, gate_shared, gated, transpose_B=True)
                T.gemm(x_shared, up_shared, acc, transpose_B=True)
            for i, j in T.Parallel(block_M, block_N):
                if row + i < end[by] and n + j < hidden:
                    out[row + i, n + j] = gated[i, j] * T.sigmoid(gated[i, j]) * acc[i, j]

    return kernel


@tile.jit
def experts_out(
    tokens,
    rows,
    experts,
    tiles,
    dim,
    hidden,
    block_M=BLOCK_M,
    block_N=64,
    block_K=64,
    num_stages=3,
    threads=128,
    dtype="float16",
):
    """``out[token] += weight[row] (h[row] down^T)``, atomically: ``out`` is zero before."""

    @T.prim_func
    def kernel(
        h: T.Tensor((rows, hidden), dtype),
        down: T.Tensor((experts, dim, hidden), dtype),
        out: T.Tensor((tokens, dim), "float32"),
        weight: T.Tensor((rows,), "float32"),
        token: T.Tensor((rows,), "int32"),
        expert: T.Tensor((tiles,), "int32"),
        first: T.Tensor((tiles,), "int32"),
        end: T.Tensor((tiles,), "int32"),
    ):
        with T.Kernel(T.ceildiv(dim, block_N), tiles, threads=threads) as (bx, by):
            h_shared = T.alloc_shared((block_M, block_K), dtype)
            down_shared = T.alloc_shared((block_N, block_K), dtype)
            acc = T.alloc_fragment((block_M, block_N), "float32")
            row, e, n = first[by], expert[by], bx * block_N
            T.assume(row >= 0)
            T.clear(acc)
            for ko in T.Pipelined(T.ceildiv(hidden, block_K), num_stages=num_stages):
                T.copy(h[row : row + block_M, ko * block_K : (ko + 1) * block_K], h_shared)
                T.copy(down[e, n : n + block_N, ko * block_K : (ko + 1) * block_K], down_shared)
                T.gemm(h_shared, down_shared, acc, transpose_B=True)
            for i, j in T.Parallel(block_M, block_N):
                if row + i < end[by] and n + j < dim:
                    T.atomic_add(out[token[row + i], n + j], acc[i, j] * weight[row + i])

    return kernel


def tables(counts: np.ndarray, block_M: int = BLOCK_M) -> list[np.ndarray]:
    """Expert, first row and end of the expert's rows of each tile. ``counts``: rows of each expert."""
    starts = np.cumsum([0, *counts[:-1]])
    found = [(e, s + t, s + n) for e, (s, n) in enumerate(zip(starts, counts)) for t in range(0, n, block_M)]
    return [np.array(column, np.int32) for column in zip(*found, strict=True)]


def routed(
    rng: np.random.Generator, tokens: int, experts: int, chosen: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random routing: the token of each row, its weight, and how many rows each expert has."""
    picked = np.argsort(rng.random((tokens, experts)), axis=1)[:, :chosen]
    order = np.argsort(picked.reshape(-1), kind="stable")
    weight = rng.dirichlet(np.ones(chosen), tokens).astype(np.float32).reshape(-1)
    counts = np.bincount(picked.reshape(-1), minlength=experts)
    return (order // chosen).astype(np.int32), weight[order], counts


def in_reference(
    x: np.ndarray, gate: np.ndarray, up: np.ndarray, token: np.ndarray, *tiles: np.ndarray
) -> np.ndarray:
    out = np.zeros((len(token), gate.shape[1]), np.float32)
    for e, start, stop in zip(*tiles, strict=True):
        rows = x[token[start:stop]].astype(np.float32)
        gated, acc = rows @ gate[e].astype(np.float32).T, rows @ up[e].astype(np.float32).T
        out[start:stop] = gated / (1 + np.exp(-gated)) * acc
    return out


def out_reference(
    h: np.ndarray,
    down: np.ndarray,
    tokens: int,
    weight: np.ndarray,
    token: np.ndarray,
    *tiles: np.ndarray,
) -> np.ndarray:
    rows = np.zeros((len(token), down.shape[1]), np.float32)
    for e, start, stop in zip(*tiles, strict=True):
        rows[start:stop] = h[start:stop].astype(np.float32) @ down[e].astype(np.float32).T
    out = np.zeros((tokens, down.shape[1]), np.float32)
    np.add.at(out, token, rows * weight[:, None])
    return out


def weights(rng: np.random.Generator, experts: int, *shape: int) -> np.ndarray:
    return (rng.standard_normal((experts, *shape)) / np.sqrt(shape[-1])).astype(np.float16)


def main() -> None:
    rng = np.random.default_rng(0)
    tokens, experts, dim, hidden = 64, 4, 64, 64
    token, weight, counts = routed(rng, tokens, experts, 2)
    where = tables(counts)
    size = (tokens, len(token), experts, len(where[0]), dim, hidden)
    x = rng.standard_normal((tokens, dim)).astype(np.float16)
    gate, up = weights(rng, experts, hidden, dim), weights(rng, experts, hidden, dim)
    down, out = weights(rng, experts, dim, hidden), np.zeros((tokens, dim), np.float32)
    h = experts_in(*size)(x, gate, up, token, *where)
    experts_out(*size)(h, down, out, weight, token, *where)
    wanted = out_reference(in_reference(x, gate, up, token, *where), down, tokens, weight, token, *where)
    print("largest error", np.abs(out - wanted).max(), "of", np.abs(wanted).max())


if __name__ == "__main__":
    main()
