"""Gated delta rule, first step: a chunk's updates solved for, so that the chunk's state enters them only once.

The state of a head is a matrix that maps keys to values. Each row of the sequence lets it fade by ``exp(gate)`` and moves what it
gives for the row's key towards the row's value: ``S = exp(gate) S; S += beta k (v - S^T k)^T``. Within a chunk that is a triangular
system for what the rows add: ``(1 + A) added = beta v - beta exp(gates) S^T k``, where ``gates`` is the running sum of the gates
and ``A[i, j] = beta[i] exp(gates[i] - gates[j]) (k[i] k[j])`` below the diagonal. This kernel gives ``U`` and ``W`` with
``added = U - W S``; ``gated_delta_state`` and ``gated_delta_out`` do the rest.
"""

from __future__ import annotations

import math

import numpy as np

import tile_core as tile
import tile_core.language as T

EXAMPLE = {"solve": {"batch": 1, "heads": 2, "seq": 256, "dim_k": 64, "dim_v": 64}}
LOG2E = math.log2(math.e)


@T.macro
def substitute(inside, inverse, part):
    """Inverses of the blocks of ``part`` rows on the diagonal of ``1 + inside``, each column by itself from the top down."""
    for column in T.Parallel(inside.shape[0]):
        first = column // part * part
        for i in range(part):
            total = T.alloc_var("float32", T.if_then_else(first + i == column, 1.0, 0.0))
            for j in range(i):
                total -= inside[first + i, first + j] * inverse[first + j, column]
            inverse[first + i, column] = total


@tile.jit(out_idx=[-2, -1])
def solve(batch, heads, seq, dim_k, dim_v, chunk=64, threads=128, dtype="float16"):
    chunks, part = T.ceildiv(seq, chunk), chunk // 4

    @T.prim_func
    def kernel(
        K: T.Tensor((batch, heads, seq, dim_k), dtype),
        V: T.Tensor((batch, heads, seq, dim_v), dtype),
        beta: T.Tensor((batch, heads, seq), "float32"),
        gates: T.Tensor((batch, heads, chunks, chunk), "float32"),
        W: T.Tensor((batch, heads, seq, dim_k), dtype),
        U: T.Tensor((batch, heads, seq, dim_v), dtype),
    ):
        with T.Kernel(chunks, heads, batch, threads=threads) as (c, h, b):
            K_shared = T.alloc_shared((chunk, dim_k), dtype)
            V_shared = T.alloc_shared((chunk, dim_v), dtype)
            beta_shared = T.alloc_shared((chunk,), "float32")
            gates_shared = T.alloc_shared((chunk,), "float32")
            inside = T.alloc_shared((chunk, chunk), "float32")
            inverse = T.alloc_shared((chunk, chunk), "float32")
            near = T.alloc_shared((chunk, chunk), dtype)
            far = T.alloc_shared((chunk, chunk), dtype)
            product = T.alloc_fragment((chunk, chunk), "float32")
            left = T.alloc_fragment((chunk, chunk), dtype)
            keys = T.alloc_fragment((chunk, dim_k), "float32")
            values = T.alloc_fragment((chunk, dim_v), "float32")
            row = c * chunk
            T.copy(K[b, h, row : row + chunk, :], K_shared)
            T.copy(V[b, h, row : row + chunk, :], V_shared)
            T.copy(beta[b, h, row], beta_shared)
            T.copy(gates[b, h, c, 0], gates_shared)
            T.clear(product)
            T.gemm(K_shared, K_shared, product, transpose_B=True)
            for i, j in T.Parallel(chunk, chunk):
                weight = beta_shared[i] * T.exp2((gates_shared[i] - gates_shared[j]) * LOG2E)
                inside[i, j] = T.if_then_else(i > j, product[i, j] * weight, 0)
            # 1 + A is D + E, the blocks on the diagonal and those below them; with N = D^-1 E, whose fourth power is zero,
            # (1 + A)^-1 = (1 - N) (1 + N^2) D^-1
            T.clear(inverse)
            substitute(inside, inverse, part)
            T.copy(inverse, near)
            for i, j in T.Parallel(chunk, chunk):
                far[i, j] = T.if_then_else(i // part > j // part, inside[i, j], 0)
            T.clear(product)
            T.gemm(near, far, product)
            T.copy(product, far)
            for i, j in T.Parallel(chunk, chunk):
                left[i, j] = T.if_then_else(i == j, 1.0, 0.0) - product[i, j]
            T.clear(product)
            T.gemm(far, far, product)
            for i, j in T.Parallel(chunk, chunk):
                far[i, j] = T.if_then_else(i == j, 1.0, 0.0) + product[i, j]
            T.clear(product)
            T.gemm(left, far, product)
            T.copy(product, left)
            T.clear(product)
            T.gemm(left, near, product)
            T.copy(product, left)
            for i, j in T.Parallel(chunk, dim_k):
                K_shared[i, j] = K_shared[i, j] * (beta_shared[i] * T.exp2(gates_shared[i] * LOG2E))
            for i, j in T.Parallel(chunk, dim_v):
                V_shared[i, j] = V_shared[i, j] * beta_shared[i]
            T.clear(keys)
            T.gemm(left, K_shared, keys)
            T.copy(keys, W[b, h, row : row + chunk, :])
            T.clear(values)
            T.gemm(left, V_shared, values)
            T.copy(values, U[b, h, row : row + chunk, :])

    return kernel


def in_chunks(a: np.ndarray, chunk: int) -> np.ndarray:
    """(batch, heads, seq, ...) as (batch, heads, chunks, chunk, ...), filled with zeros, in float64."""
    a = np.pad(a.astype(np.float64), [(0, 0), (0, 0), (0, -a.shape[2] % chunk)] + [(0, 0)] * (a.ndim - 3))
    return a.reshape(*a.shape[:2], -1, chunk, *a.shape[3:])


def fading(gates: np.ndarray) -> np.ndarray:
    """``exp(gates[i] - gates[j])`` where j <= i."""
    gates = gates.astype(np.float64)
    return np.tril(np.exp(np.minimum(gates[..., :, None] - gates[..., None, :], 0)))


def reference(
    k: np.ndarray, v: np.ndarray, beta: np.ndarray, gates: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """W and U."""
    seq, chunk = k.shape[2], gates.shape[3]
    keys, values, part = (in_chunks(x, chunk) for x in (k, v, beta))
    inside = np.tril(part[..., None] * fading(gates) * (keys @ np.swapaxes(keys, -1, -2)), -1)
    solved = np.linalg.inv(np.eye(chunk) + inside)
    w = solved @ (keys * (part * np.exp(gates.astype(np.float64)))[..., None])
    u = solved @ (values * part[..., None])
    w, u = (x.reshape(*k.shape[:2], -1, x.shape[-1])[:, :, :seq] for x in (w, u))
    return w, u


def rows(
    rng: np.random.Generator, batch: int, heads: int, seq: int, dim_k: int, dim_v: int, chunk: int = 64
) -> tuple[np.ndarray, ...]:
    """Random keys of length 1, values, betas, and the running sums of the gates in each chunk."""
    k = rng.standard_normal((batch, heads, seq, dim_k))
    k = (k / np.linalg.norm(k, axis=-1, keepdims=True)).astype(np.float16)
    v = rng.standard_normal((batch, heads, seq, dim_v)).astype(np.float16)
    beta = rng.uniform(0.1, 1, (batch, heads, seq)).astype(np.float32)
    gates = np.cumsum(in_chunks(-rng.uniform(0, 0.2, (batch, heads, seq)), chunk), axis=-1)
    return k, v, beta, gates.astype(np.float32)


def main() -> None:
    s = EXAMPLE["solve"]
    inputs = rows(np.random.default_rng(0), **s)
    for name, got, wanted in zip("WU", solve(**s)(*inputs), reference(*inputs), strict=True):
        print(f"{name}: largest error", np.abs(got - wanted).max(), "of", np.abs(wanted).max())


if __name__ == "__main__":
    main()
