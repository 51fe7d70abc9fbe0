"""Products with scales of blocks and of sorted experts, at even, ragged, odd and large sizes: see ``example_cases``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import fp8_block_gemm
import moe
import numpy as np
from example_cases import Array, Example, normal

TOLERANCE = 5e-3

EIGHT = ((64, 128, 256), (100, 200, 272), (1, 144, 16), (33, 17, 129), (1024, 1024, 2048))  # M, N, K
# tokens, experts, of them chosen for each token, dim, hidden
EXPERTS = ((64, 4, 2, 64, 64), (50, 8, 3, 72, 40), (7, 3, 1, 33, 17), (2048, 16, 4, 512, 1024))


def scaled() -> Iterator[Example]:
    for m, n, k in EIGHT:
        yield Example(
            "fp8_block_gemm:fp8_gemm",
            (m, n, k),
            partial(_scaled, (m, n, k)),
            fp8_block_gemm.reference,
            TOLERANCE,
            large=m > 500,
        )


def _scaled(size: tuple[int, int, int], rng: np.random.Generator) -> list[Array]:
    return fp8_block_gemm.operands(rng, *size)


def _routed(size: tuple[int, ...]) -> tuple[list[Array], Array]:
    """Token of each row, expert, first row and end of each tile; and the weights of the rows."""
    tokens, experts, chosen, *_ = size
    token, weight, counts = moe.routed(np.random.default_rng(tokens), tokens, experts, chosen)
    return [token, *moe.tables(counts)], weight


def _in(size: tuple[int, ...], rng: np.random.Generator) -> list[Array]:
    tokens, experts, _, dim, hidden = size
    gate, up = (moe.weights(rng, experts, hidden, dim) for _ in range(2))
    return [normal(rng, "float16", tokens, dim), gate, up, *_routed(size)[0]]


def _out(size: tuple[int, ...], rng: np.random.Generator) -> list[Array]:
    _, experts, _, dim, hidden = size
    where, weight = _routed(size)
    h = normal(rng, "float16", len(weight), hidden)
    return [h, moe.weights(rng, experts, dim, hidden), weight, *where]


def experts() -> Iterator[Example]:
    for size in EXPERTS:
        tokens, many, _, dim, hidden = size
        where, weight = _routed(size)
        sizes = (tokens, len(weight), many, len(where[1]), dim, hidden)
        large = tokens > 500
        yield Example("moe:experts_in", sizes, partial(_in, size), moe.in_reference, TOLERANCE, large=large)
        yield Example(
            "moe:experts_out",
            sizes,
            partial(_out, size),
            lambda h, down, *rest, n=tokens: moe.out_reference(h, down, n, *rest),
            TOLERANCE,
            out=((tokens, dim), "float32", 0),
            large=large,
        )


FAMILIES = (scaled, experts)
