"""Forward attention in Triton as a contestant: tensor descriptors, an online softmax, the diagonal in a loop of its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

Configuration = tuple[int, int, int, int]  # rows of Q, rows of K and V, stages, warps


def configurations(dim: int) -> tuple[Configuration, ...]:
    """Those that were fastest among some on an H200."""
    return ((128, 128, 2, 8), (128, 64, 3, 8)) if dim == 128 else ((128, 128, 3, 8), (128, 64, 4, 4))


@triton.jit
def _walk(acc, top, total, q, K, V, base, row, begin, end, scale, BM, BN: tl.constexpr, MASKED: tl.constexpr):
    rows, columns = row + tl.arange(0, BM), tl.arange(0, BN)
    for start in tl.range(begin, end, BN):
        k = K.load([base + start, 0])
        scores = tl.dot(q, k.T)
        if MASKED:
            scores = tl.where(rows[:, None] >= start + columns[None, :], scores, float("-inf"))
        new = tl.maximum(top, tl.max(scores, 1) * scale)
        weights = tl.math.exp2(scores * scale - new[:, None])
        rescale = tl.math.exp2(top - new)
        total = total * rescale + tl.sum(weights, 1)
        acc = acc * rescale[:, None]
        v = V.load([base + start, 0])
        acc = tl.dot(weights.to(q.dtype), v, acc)
        top = new
    return acc, top, total


@triton.jit
def _attention(
    Q, K, V, O, scale, N, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr
):
    row, base = (tl.num_programs(0) - 1 - tl.program_id(0)) * BM, tl.program_id(1) * N
    q = Q.load([base + row, 0])
    acc = tl.zeros([BM, D], tl.float32)
    top = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    whole = row // BN * BN if CAUSAL else N
    acc, top, total = _walk(acc, top, total, q, K, V, base, row, 0, whole, scale, BM, BN, False)
    if CAUSAL:
        acc, top, total = _walk(acc, top, total, q, K, V, base, row, whole, row + BM, scale, BM, BN, True)
    O.store([base + row, 0], (acc / total[:, None]).to(q.dtype))


def contestant(c: Configuration, causal: bool) -> Callable[[Any], Any]:
    """Takes (q, k, v), each (batch, heads, tokens, dim), contiguous; tokens are whole tiles."""
    rows, columns, stages, warps = c

    def run(data: Any) -> Any:
        import torch

        q, k, v = data
        out = torch.empty_like(q)
        batch, heads, n, dim = q.shape
        flat = [t.view(-1, dim) for t in (q, k, v, out)]
        blocks = [[b, dim] for b in (rows, columns, columns, rows)]
        maps = [TensorDescriptor.from_tensor(t, b) for t, b in zip(flat, blocks, strict=True)]
        scale = dim**-0.5 * math.log2(math.e)
        grid = (n // rows, batch * heads)
        _attention[grid](
            *maps, scale, n, dim, rows, columns, causal, num_stages=stages, num_warps=warps
        )  # fmt: skip
        return out

    return run
