"""The attention examples beyond the simple one, at even, ragged and large sizes."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

from example_cases import Array, Example, Inputs, normal

TIGHT = 5e-3


def by(module: str, **keywords: Any) -> Callable[..., Any]:
    """The reference of an example with keywords."""
    return lambda *arrays: importlib.import_module(module).reference(*arrays, **keywords)


def _with_sinks(heads: int, *shapes: tuple[int, ...]) -> Inputs:
    return lambda rng: [*(normal(rng, "float16", *s) for s in shapes), normal(rng, "float32", heads)]


def variants() -> Iterator[Example]:
    for sizes, how in (
        ((1, 2, 64, 128, 64), {}),
        ((1, 4, 70, 97, 96), {"groups": 2, "causal": True}),
        ((1, 2, 65, 127, 64), {"window": 33}),
        ((2, 2, 130, 66, 32), {"window": 40, "sink": True}),
        ((1, 2, 33, 70, 128), {"causal": True, "sink": True}),
        ((1, 2, 64, 64, 256), {"causal": True, "groups": 2}),
        ((1, 4, 1, 200, 64), {"groups": 4}),
        ((2, 16, 2048, 2048, 128), {"causal": True, "groups": 4, "block_M": 128, "block_N": 128, "threads": 256}),
        ((2, 8, 1024, 1000, 96), {"causal": True, "block_M": 128, "threads": 256}),
        ((2, 8, 2048, 2048, 64), {"window": 512, "sink": True, "block_M": 128, "block_N": 128, "threads": 256}),
        ((1, 4, 1000, 1000, 256), {"causal": True, "block_M": 128, "threads": 256}),
    ):
        batch, heads, seq_q, seq_kv, dim = sizes
        q, kv = (batch, heads, seq_q, dim), (batch, heads // how.get("groups", 1), seq_kv, dim)
        seen = {k: how[k] for k in ("causal", "window") if k in how}
        data = _with_sinks(heads, q, kv, kv)
        yield Example(
            "attention_variants:attention",
            sizes,
            data if how.get("sink") else (lambda rng, d=data: d(rng)[:3]),
            by("attention_variants", **seen),
            TIGHT,
            how,
            large=seq_q > 500,
        )


ATTENTIONS = (variants,)
