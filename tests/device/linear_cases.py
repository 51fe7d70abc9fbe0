"""The linear-attention examples at even, ragged, odd and large sizes: see ``example_cases``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import gated_delta_out
import gated_delta_solve
import gated_delta_state
import linear_attention
import mamba_chunk_scan
import mamba_chunk_state
import numpy as np
import retention
from example_cases import Array, Example, normal, several

TOLERANCE = 5e-3  # of float16 results

# batch, seqlen, heads, groups, chunk, dim, state
MAMBA = (
    (1, 256, 2, 1, 128, 64, 64),
    (2, 200, 4, 2, 64, 32, 16),
    (1, 77, 3, 1, 64, 33, 17),
    (1, 16, 1, 1, 32, 16, 16),
    (1, 2048, 8, 1, 256, 64, 128),
)


def _mamba(size: tuple[int, ...], fused: bool | None, rng: np.random.Generator) -> list[Array]:
    """Arguments of the chunk scan; ``fused`` None: of the chunk state."""
    batch, seqlen, heads, groups, chunk, dim, state = size
    dt, decay = mamba_chunk_state.steps(rng, batch, seqlen, heads, chunk)
    b, c = (normal(rng, "float16", batch, seqlen, groups, state) for _ in range(2))
    x = normal(rng, "float16", batch, seqlen, heads, dim)
    if fused is None:
        return [b, x, dt, decay]
    states = normal(rng, "float16", batch, dt.shape[2], heads, dim, state)
    first = b if fused else mamba_chunk_scan.scores(c, b, chunk).astype(np.float16)
    return [first, x, dt, decay, c, states, normal(rng, "float32", heads)]


def mambas() -> Iterator[Example]:
    for size in MAMBA:
        more: dict[str, Any] = {"tolerance": TOLERANCE, "large": size[1] > 500}
        for fused in (False, True):
            yield Example(
                "mamba_chunk_scan:chunk_scan",
                size,
                partial(_mamba, size, fused),
                mamba_chunk_scan.reference,
                keywords={"fused": fused},
                **more,
            )
        for registers in (False, True):
            yield Example(
                "mamba_chunk_state:chunk_state",
                size,
                partial(_mamba, size, None),
                mamba_chunk_state.reference,
                keywords={"registers": registers},
                **more,
            )
        yield from _around(size, more)


def _around(size: tuple[int, ...], more: dict[str, Any]) -> Iterator[Example]:
    batch, seqlen, heads, groups, chunk, dim, state = size
    chunks = -(-seqlen // chunk)

    def states(rng: np.random.Generator) -> list[Array]:
        added = normal(rng, "float16", batch, chunks, heads, dim, state)
        return [added, mamba_chunk_state.steps(rng, batch, seqlen, heads, chunk)[1]]

    both = [(batch, seqlen, groups, state)] * 2
    yield Example(
        "mamba_chunk_scan:chunk_scores",
        (batch, seqlen, groups, chunk, state),
        several("float16", *both),
        lambda c, b: mamba_chunk_scan.scores(c, b, chunk),
        **more,
    )
    yield Example(
        "mamba_chunk_state:state_passing",
        (batch, chunks, heads, chunk, dim, state),
        states,
        mamba_chunk_state.passing_reference,
        **more,
    )


# batch, heads, seq, dim_k, dim_v
LINEAR = (
    (1, 2, 128, 64, 64),
    (2, 1, 200, 32, 64),
    (1, 3, 77, 33, 17),
    (1, 1, 1, 16, 16),
    (2, 4, 2048, 128, 128),
)


def _linear(size: tuple[int, ...], fading: bool, rng: np.random.Generator) -> list[Array]:
    *many, dim_k, dim_v = size
    tensors = [normal(rng, "float16", *many, dim) for dim in (dim_k, dim_k, dim_v)]
    return [*tensors, retention.rates(size[1])] if fading else tensors


def linears() -> Iterator[Example]:
    for size in LINEAR:
        for name, module in (("linear_attention", linear_attention), ("retention", retention)):
            for reverse in (False, True):
                yield Example(
                    f"{name}:{name}",
                    size,
                    partial(_linear, size, module is retention),
                    partial(module.reference, reverse=reverse),
                    TOLERANCE,
                    {"reverse": reverse},
                    large=size[2] > 500,
                )


def _delta(size: tuple[int, ...], step: str, rng: np.random.Generator) -> list[Array]:
    k, v, beta, gates = gated_delta_solve.rows(rng, *size)
    if step == "solve":
        return [k, v, beta, gates]
    w, u = (x.astype(np.float16) for x in gated_delta_solve.reference(k, v, beta, gates))
    if step == "states":
        return [k, w, u, gates]
    states, added = (x.astype(np.float16) for x in gated_delta_state.reference(k, w, u, gates))
    return [normal(rng, "float16", *k.shape), k, added, states, gates]


def deltas() -> Iterator[Example]:
    steps = (
        ("gated_delta_solve:solve", gated_delta_solve.reference),
        ("gated_delta_state:states", gated_delta_state.reference),
        ("gated_delta_out:outputs", gated_delta_out.reference),
    )
    for size in LINEAR:
        for kernel, reference in steps:
            inputs = partial(_delta, size, kernel.split(":")[1])
            yield Example(kernel, size, inputs, reference, TOLERANCE, large=size[2] > 500)


FAMILIES = (mambas, linears, deltas)
