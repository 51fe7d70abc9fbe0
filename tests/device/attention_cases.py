"""The attention examples beyond the simple one, at even, ragged and large sizes."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from example_cases import Array, Example, Inputs, normal, several

TIGHT = 5e-3


def by(module: str, **keywords: Any) -> Callable[..., Any]:
    """The reference of an example with keywords."""
    return lambda *arrays: importlib.import_module(module).reference(*arrays, **keywords)


def _with_sinks(heads: int, dtype: str, *shapes: tuple[int, ...]) -> Inputs:
    return lambda rng: [*(normal(rng, dtype, *s) for s in shapes), normal(rng, "float32", heads)]


def variants() -> Iterator[Example]:
    for sizes, how in (
        ((1, 2, 64, 128, 64), {}),
        ((1, 4, 70, 97, 96), {"groups": 2, "causal": True}),
        ((1, 2, 65, 127, 64), {"window": 33}),
        ((2, 2, 130, 66, 32), {"window": 40, "sink": True}),
        ((1, 2, 33, 70, 128), {"causal": True, "sink": True}),
        ((1, 2, 64, 64, 256), {"causal": True, "groups": 2}),
        ((1, 4, 1, 200, 64), {"groups": 4}),
        ((1, 2, 40, 90, 64), {"causal": True, "dtype": "bfloat16"}),
        (
            (2, 16, 2048, 2048, 128),
            {"causal": True, "groups": 4, "block_M": 128, "block_N": 128, "threads": 256},
        ),
        ((2, 8, 1024, 1000, 96), {"causal": True, "block_M": 128, "threads": 256}),
        (
            (2, 8, 2048, 2048, 64),
            {"window": 512, "sink": True, "block_M": 128, "block_N": 128, "threads": 256},
        ),
        ((1, 4, 1000, 1000, 256), {"causal": True, "block_M": 128, "threads": 256}),
    ):
        batch, heads, seq_q, seq_kv, dim = sizes
        q, kv = (batch, heads, seq_q, dim), (batch, heads // how.get("groups", 1), seq_kv, dim)
        seen = {k: how[k] for k in ("causal", "window") if k in how}
        dtype = how.get("dtype", "float16")
        data = _with_sinks(heads, dtype, q, kv, kv)
        yield Example(
            "attention_variants:attention",
            sizes,
            data if how.get("sink") else (lambda rng, d=data: d(rng)[:3]),
            by("attention_variants", **seen),
            TIGHT if dtype == "float16" else 8 * TIGHT,
            how,
            large=seq_q > 500,
        )


def _packed(lengths_q: tuple[int, ...], lengths_kv: tuple[int, ...], *tail: int) -> Inputs:
    """Q, K and V of sequences one after the other, and where each of them begins."""
    heads, groups, dim = tail

    def made(rng: np.random.Generator) -> list[Array]:
        q = normal(rng, "float16", sum(lengths_q), heads, dim)
        k, v = normal(rng, "float16", 2, sum(lengths_kv), heads // groups, dim)
        return [q, k, v, *(np.cumsum((0, *x)).astype(np.int32) for x in (lengths_q, lengths_kv))]

    return made


def packed() -> Iterator[Example]:
    for lengths_q, lengths_kv, heads, groups, dim, how in (
        ((64, 128), (128, 64), 2, 1, 64, {}),
        ((17, 0, 80, 1), (17, 3, 100, 65), 4, 2, 64, {"causal": True}),
        ((33, 70), (66, 70), 2, 1, 32, {"window": 30}),
        ((1000, 17, 2048, 1), (1000, 250, 2048, 700), 16, 4, 128, {"causal": True, "threads": 256}),
    ):
        big = {"block_M": 128, "block_N": 128} if max(lengths_q) > 500 else {}
        yield Example(
            "attention_varlen:attention",
            (len(lengths_q), heads, max(lengths_q), dim),
            _packed(lengths_q, lengths_kv, heads, groups, dim),
            by("attention_varlen", **{k: how[k] for k in ("causal", "window") if k in how}),
            TIGHT,
            {"groups": groups, **how, **big},
            large=bool(big),
            dims={"rows_q": sum(lengths_q), "rows_kv": sum(lengths_kv)},
        )


def _to_go_back(q: tuple[int, ...], kv: tuple[int, ...], causal: bool) -> Inputs:
    def made(rng: np.random.Generator) -> list[Array]:
        x = [normal(rng, "float16", *s) for s in (q, kv, kv)]
        out, lse = importlib.import_module("attention_variants").reference(*x, causal=causal)
        return [*x, out.astype(np.float16), normal(rng, "float16", *q), lse.astype(np.float32)]

    return made


def backward() -> Iterator[Example]:
    for sizes, how in (
        ((1, 2, 64, 128, 64), {}),
        ((1, 4, 70, 97, 64), {"groups": 2, "causal": True}),
        ((2, 2, 33, 33, 128), {"causal": True}),
        ((1, 2, 100, 40, 32), {"causal": True}),  # the first rows see no key
        ((1, 2, 1, 65, 32), {}),
        ((1, 2, 192, 256, 128), {"causal": True, "groups": 2, "block_N": 128, "threads": 256}),
        ((1, 1, 200, 333, 128), {"block_N": 128, "threads": 256}),
        ((1, 16, 2048, 2048, 128), {"causal": True, "groups": 2, "block_N": 128, "threads": 256}),
        ((2, 8, 1000, 1000, 64), {"block_N": 128, "threads": 256}),
    ):
        batch, heads, seq_q, seq_kv, dim = sizes
        q, kv = (batch, heads, seq_q, dim), (batch, heads // how.get("groups", 1), seq_kv, dim)
        causal = how.get("causal", False)
        yield Example(
            "attention_backward:backward",
            sizes,
            _to_go_back(q, kv, causal),
            by("attention_backward", causal=causal),
            TIGHT,
            how,
            large=seq_q > 500,
        )


def _cached(
    q: tuple[int, ...], lengths: tuple[int, ...], row: tuple[int, ...], many: int, how: Any
) -> Inputs:
    """A query and ``many`` caches, contiguous or in pages that lie in any order; and the sequences' lengths."""
    most, page = max(lengths), how.get("page", 0)

    def made(rng: np.random.Generator) -> list[Array]:
        per = -(-most // page) if page else 0
        shape = (len(lengths) * per, page, *row) if page else (len(lengths), most, *row)
        given = [normal(rng, "float16", *q), *(normal(rng, "float16", *shape) for _ in range(many))]
        given.append(np.array(lengths, np.int32))
        if page:
            given.append(rng.permutation(len(lengths) * per).astype(np.int32).reshape(-1, per))
        return given

    return made


def decoding() -> Iterator[Example]:
    for heads, lengths, dim, how in (
        (4, (256, 128), 64, {"groups": 4, "splits": 2}),
        (7, (0, 1, 200), 64, {"groups": 7, "splits": 3}),
        (40, (70, 65), 128, {"groups": 20, "splits": 2}),
        (2, (127, 64), 96, {"splits": 4, "page": 64}),
        (4, (0, 250, 17), 64, {"groups": 2, "splits": 3, "page": 16}),
        (8, (300,), 32, {"groups": 8, "splits": 1, "page": 128}),
        (32, (8192, 1000, 1, 5000), 128, {"groups": 8, "splits": 8}),
        (32, (8192, 1000, 1, 5000), 128, {"groups": 8, "splits": 8, "page": 64}),
    ):
        q, row = (len(lengths), heads, dim), (heads // how.get("groups", 1), dim)
        yield Example(
            "flash_decoding:decode",
            (len(lengths), heads, max(lengths), dim),
            _cached(q, lengths, row, 2, how),
            by("flash_decoding"),
            TIGHT,
            how,
            large=max(lengths) > 500,
        )


def latent() -> Iterator[Example]:
    for heads, lengths, dim, rope, how in (
        (64, (128,), 512, 64, {"tiles": 1}),
        (64, (65, 0, 200), 512, 64, {}),
        (128, (0, 70), 512, 64, {"splits": 2, "page": 64}),
        (16, (130, 1), 128, 64, {"splits": 2}),
        (70, (100, 17), 128, 32, {"splits": 3, "page": 16}),
        (128, (8192, 1000, 4097), 512, 64, {"splits": 4}),
        (128, (8192, 1000, 4097), 512, 64, {"splits": 4, "page": 64}),
    ):
        yield Example(
            "mla_decode:decode",
            (len(lengths), heads, max(lengths), dim, rope),
            _cached((len(lengths), heads, dim + rope), lengths, (dim + rope,), 1, how),
            by("mla_decode", dim=dim),
            TIGHT,
            how,
            large=max(lengths) > 500,
        )


def latent_prefill() -> Iterator[Example]:
    for batch, heads, seq_q, seq_kv, causal, how in (
        (1, 2, 64, 128, False, {}),
        (1, 2, 70, 97, True, {}),
        (2, 1, 33, 33, True, {}),
        (1, 16, 2048, 2048, True, {"block_M": 128, "threads": 256}),
    ):
        q, kv = (batch, heads, seq_q, 192), (batch, heads, seq_kv, 128)
        shapes = (q, kv, (batch, seq_kv, 64), kv)
        yield Example(
            "mla_prefill:prefill",
            (batch, heads, seq_q, seq_kv),
            several("float16", *shapes),
            by("mla_prefill", causal=causal),
            TIGHT,
            {"causal": causal, **how},
            large=seq_q > 500,
        )


def _masked(q: tuple[int, ...], kv: tuple[int, ...], block: tuple[int, int]) -> Inputs:
    def made(rng: np.random.Generator) -> list[Array]:
        grid = (*q[:2], -(-q[2] // block[0]), -(-kv[2] // block[1]))
        return [*(normal(rng, "float16", *s) for s in (q, kv, kv)), rng.integers(0, 2, grid).astype(np.int8)]

    return made


def block_sparse() -> Iterator[Example]:
    for sizes, how in (
        ((1, 2, 128, 256, 64), {}),
        ((2, 2, 70, 225, 32), {"causal": True}),
        ((1, 1, 1, 65, 64), {}),
        ((1, 2, 97, 200, 64), {"block_M": 32, "block_N": 16}),
        ((1, 16, 4096, 4096, 128), {"causal": True, "block_M": 128, "block_N": 128, "threads": 256}),
    ):
        batch, heads, seq_q, seq_kv, dim = sizes
        block = how.get("block_M", 64), how.get("block_N", 64)
        yield Example(
            "block_sparse_attention:attention",
            sizes,
            _masked((batch, heads, seq_q, dim), (batch, heads, seq_kv, dim), block),
            by("block_sparse_attention", causal=how.get("causal", False), block_M=block[0], block_N=block[1]),
            TIGHT,
            how,
            large=seq_q > 500,
        )


def _selected(sizes: tuple[int, ...], block: int) -> Inputs:
    batch, seq, heads, groups, dim, count = sizes

    def made(rng: np.random.Generator) -> list[Array]:
        kv = (batch, seq, heads // groups, dim)
        given = [normal(rng, "float16", batch, seq, heads, dim), *(normal(rng, "float16", *kv) for _ in "kv")]
        chosen = importlib.import_module("native_sparse_attention").chosen
        return [*given, chosen(rng, batch, seq, heads // groups, count, block)]

    return made


def selecting() -> Iterator[Example]:
    for sizes, block in (
        ((1, 64, 16, 16, 64, 2), 32),
        ((2, 33, 6, 3, 32, 3), 16),
        ((1, 17, 20, 20, 32, 1), 64),
        ((1, 2048, 64, 16, 128, 16), 64),
    ):
        yield Example(
            "native_sparse_attention:selected",
            sizes,
            _selected(sizes, block),
            by("native_sparse_attention", block=block),
            TIGHT,
            {"block": block},
            large=sizes[1] > 500,
        )


ATTENTIONS = (variants, packed, backward, decoding, latent, latent_prefill, block_sparse, selecting)
