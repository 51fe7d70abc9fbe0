"""The examples and the benchmarks' kernels at even, ragged and large sizes: what goes in, and what must come out."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

ROOT = Path(__file__).parents[2]
for folder in ("examples", "benchmarks"):
    sys.path.insert(0, str(ROOT / folder))

Array = np.ndarray
Inputs = Callable[[np.random.Generator], list[Array]]


@dataclass(frozen=True)
class Example:
    """``kernel``: module and function; ``arguments`` make a kernel of it, None if it takes the tensors itself.

    ``out``: shape, type and filling of the result's tensor, the third parameter; None if the kernel makes it.
    ``reference``: the result by numpy. ``tolerance``: allowed error, relative to the largest value. ``large``: too large for
    the interpreter. A kernel with several results gives a tuple of them, and so does its reference.
    ``dims``: the sizes that stay open in the kernel.
    """

    kernel: str
    arguments: tuple[Any, ...] | None
    inputs: Inputs
    reference: Callable[..., Any]
    tolerance: float = 1e-2
    keywords: dict[str, Any] = field(default_factory=dict[str, Any])
    out: tuple[tuple[int, ...], str, float] | None = None
    large: bool = False
    dims: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def name(self) -> str:
        sizes = "x".join(map(str, self.arguments or [len(self.data()[0])]))
        return "-".join([self.kernel, sizes, *(f"{k}={v}" for k, v in self.keywords.items())])

    def data(self) -> list[Array]:
        """The inputs: equal each time."""
        return self.inputs(np.random.default_rng(len(self.kernel)))

    def result(self) -> Array | None:
        """The tensor that the result goes into, where the kernel takes one."""
        return None if self.out is None else np.full(self.out[0], self.out[2], typed(self.out[1]))

    def run(self, tensors: list[Any], out: Any) -> Any:
        """Call the kernel on tensors of any kind; gives the result, which is ``out`` unless the kernel makes it."""
        module, _, function = self.kernel.rpartition(":")
        made = getattr(importlib.import_module(module), function)
        if self.arguments is not None:
            made = made(*self.arguments, **self.keywords)
        if out is None:
            return made(*tensors)
        made(*tensors[:2], out, *tensors[2:])
        return out

    def stored_as(self, number: int) -> str:
        """The name under which a file of results holds this one."""
        return f"{self.name}#{number}" if number else self.name

    def restored(self, stored: Any, like: list[Array]) -> list[Array]:
        """The results that a file holds as bytes, with types and shapes of others."""
        return [
            np.frombuffer(stored[self.stored_as(n)].tobytes(), x.dtype).reshape(x.shape)
            for n, x in enumerate(like)
        ]

    def problem(self, got: Any, wanted: Any) -> str:
        """What is wrong with the results; "" if nothing is."""
        pairs = list(zip(several_or_one(got), several_or_one(wanted), strict=True))
        found = [self._problem(x, y) for x, y in pairs]
        return "; ".join(f"result {n}: {p}" if len(found) > 1 else p for n, p in enumerate(found) if p)

    def _problem(self, got: Array, wanted: Array) -> str:
        x, y = (v.astype(np.float64) for v in (got, wanted))
        if x.shape != y.shape:
            return f"shape {x.shape} instead of {y.shape}"
        same = (x == y) & np.isinf(y)  # the logarithm of an empty sum is -inf
        error = np.where(np.isfinite(x), np.abs(x - np.where(same, 0, y)), np.where(same, 0, np.inf))
        allowed = self.tolerance * max(np.abs(y[np.isfinite(y)]).max(initial=0), 1e-6)
        bad = np.argwhere(error > allowed)
        if not len(bad):
            return ""
        at = tuple(bad[0])
        return f"{len(bad)} of {x.size} elements are off, the first {[int(i) for i in at]} is {x[at]} instead of {y[at]}"


def several_or_one(results: Any) -> tuple[Any, ...]:
    """The results of a call as a tuple, also if there is only one."""
    return tuple(results) if isinstance(results, (tuple, list)) else (results,)


def typed(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


def normal(rng: np.random.Generator, dtype: str, *shape: int) -> Array:
    if dtype == "int8":
        return rng.integers(-128, 128, shape).astype(np.int8)
    return rng.standard_normal(shape, np.float32).astype(typed(dtype))


def reference_of(module: str) -> Callable[..., Array]:
    """The example's own numpy reference."""
    return lambda *arrays: importlib.import_module(module).reference(*arrays)


def several(dtype: str, *shapes: tuple[int, ...]) -> Inputs:
    return lambda rng: [normal(rng, dtype, *s) for s in shapes]


# ---- examples/


def plain(a: Array, b: Array) -> Array:
    return a.astype(np.float32) @ b.astype(np.float32)


def matmuls() -> Iterator[Example]:
    for (m, n, k), blocks, large in (
        ((512, 512, 512), (64, 64, 64), True),
        ((64, 64, 64), (32, 32, 32), False),
        ((1, 104, 33), (16, 32, 11), False),
        ((127, 33, 66), (64, 32, 33), False),
        ((2048, 1024, 1024), (128, 128, 64), True),
    ):
        more = {"out": ((m, n), "float16", np.nan), "large": large}
        yield Example("matmul:matmul", (m, n, k, *blocks), several("float16", (m, k), (k, n)), plain, **more)


def products() -> Iterator[Example]:
    relu = reference_of("gemm_relu")
    sizes = ((64, 64, 64), (1, 104, 33), (33, 104, 33), (127, 65, 96), (128, 128, 1), (5, 7, 0))
    for m, n, k in (*sizes, (4096, 4096, 4096), (1000, 1000, 1000)):
        data = several("float16", (m, k), (k, n))
        yield Example("gemm_relu:gemm_relu", (m, n, k), data, relu, large=m * n > 1e5)
    for m, n, k, splits in ((64, 64, 256, 4), (33, 104, 33, 2), (1, 16, 200, 3), (512, 256, 8192, 8)):
        yield Example(
            "split_k:split_k",
            (m, n, k, splits),
            several("float16", (m, k), (k, n)),
            plain,
            1e-3,
            out=((m, n), "float32", 0),
            large=m > 500,
        )
    for n, k in ((64, 256), (1, 33), (127, 104), (4096, 4096)):
        data = several("float16", (n, k), (k,))
        yield Example("gemv:gemv", (n, k), data, reference_of("gemv"), 1e-4, large=n > 500)
    for m, n, k in ((32, 64, 128), (1, 104, 96), (33, 64, 33), (128, 1024, 4096)):
        yield Example(
            "dequant_gemm:dequant_gemm",
            (m, n, k),
            partial(_four_bits, m, n, k),
            _of_four_bits,
            1e-3,
            large=n > 500,
        )


def _four_bits(m: int, n: int, k: int, rng: np.random.Generator) -> list[Array]:
    scales = rng.uniform(0.5, 1.5, (-(-k // 32), n)).astype(np.float16)
    weights = rng.integers(-8, 8, (k, n))
    return [normal(rng, "float16", m, k), importlib.import_module("dequant_gemm").pack(weights), scales]


def _of_four_bits(a: Array, packed: Array, scales: Array) -> Array:
    rows = np.stack((packed & 15, packed >> 4), 1).reshape(-1, packed.shape[1])[: a.shape[1]]
    signed = (rows.astype(np.int64) ^ 8) - 8
    return importlib.import_module("dequant_gemm").reference(a, signed, scales)


def rowwise() -> Iterator[Example]:
    for m, n in ((16, 128), (1, 229), (33, 104), (127, 1), (4096, 1024)):
        yield Example(
            "softmax:softmax",
            (m, n),
            lambda rng, m=m, n=n: [normal(rng, "float32", m, n) * 10],
            reference_of("softmax"),
            1e-5,
            large=m > 500,
        )
    for m, n in ((8, 128), (1, 229), (33, 104), (1024, 2048)):
        data = several("float32", (m, n), (n,), (n,))
        yield Example("layer_norm:layer_norm", (m, n), data, reference_of("layer_norm"), 1e-5, large=m > 500)
    for n in (0, 1, 33, 127, 1024, 5000, 10_000_019):
        data = several("float32", (n,), (n,))
        yield Example("vector_add:add", None, data, np.add, 0.0, large=n > 1e6)


def attentions() -> Iterator[Example]:
    sizes = ((1, 2, 64, 64, 32), (1, 2, 33, 127, 32), (1, 2, 1, 104, 16), (1, 2, 70, 33, 32))
    for batch, heads, seq_q, seq_kv, dim in (*sizes, (1, 2, 200, 200, 64), (2, 8, 1024, 1000, 128)):
        q, kv = (batch, heads, seq_q, dim), (batch, heads, seq_kv, dim)
        for causal in (False, True):
            yield Example(
                "flash_attention:attention",
                (batch, heads, seq_q, seq_kv, dim),
                several("float16", q, kv, kv),
                lambda *a, c=causal: importlib.import_module("flash_attention").reference(*a, causal=c),
                keywords={"causal": causal},
                large=seq_q > 500,
            )


def convolutions() -> Iterator[Example]:
    for n, c, h, w, f, r, stride, pad, dilation in (
        (1, 8, 8, 8, 32, 3, 1, 1, 1),
        (2, 3, 9, 7, 5, 3, 2, 1, 1),
        (1, 4, 9, 9, 8, 3, 1, 0, 2),
        (1, 8, 5, 5, 8, 1, 1, 0, 1),
        (4, 64, 56, 56, 64, 3, 1, 1, 1),
    ):
        yield Example(
            "conv2d:conv2d",
            (n, c, h, w, f, r, stride, pad, dilation),
            several("float16", (n, h, w, c), (r, r, c, f)),
            lambda x, y, how=(stride, pad, dilation): importlib.import_module("conv2d").reference(x, y, *how),
            1e-3,
            large=h > 50,
        )


# ---- benchmarks/kernels/


def turned(a: Array, b: Array, a_t: bool = False, b_t: bool = True) -> Array:
    x, y = (v.astype(np.float64 if v.dtype == np.int8 else np.float32) for v in (a, b))
    return (x.swapaxes(-1, -2) if a_t else x) @ (y.swapaxes(-1, -2) if b_t else y)


FORMS = {  # operands and results, sums, depth of a tile
    "bfloat16": ("bfloat16", "float32", 64),
    "float16": ("float16", "float32", 64),
    "float8_e4m3fn": ("bfloat16", "float32", 128),
    "int8": ("int32", "int32", 128),
    "float32": ("float32", "float32", 32),
}


def benchmark_gemms() -> Iterator[Example]:
    # the last has more tiles than there are cores: a block gets several of them
    sizes = ((256, 512, 256), (300, 520, 272), (1, 16, 16), (200, 136, 1040))
    large = ((4096, 4096, 4096), (4000, 4080, 1040))
    for dtype, (out, accum, depth) in FORMS.items():
        for m, n, k in (*sizes, *large):
            more = {"dtype": dtype, "out_dtype": out, "accum": accum, "block_K": depth}
            yield Example(
                "kernels.gemm:gemm",
                (m, n, k),
                several(dtype, (m, k), (n, k)),
                turned,
                0.0 if dtype == "int8" else 1e-2,
                more,
                ((m, n), out, 77),
                (m, n, k) in large,
            )


def other_forms() -> Iterator[Example]:
    for m, n, k in ((256, 512, 256), (200, 136, 72), (4096, 2048, 2048)):
        for a_t, b_t in ((False, False), (True, False), (True, True)):
            yield Example(
                "kernels.gemm_forms:stored",
                (m, n, k, a_t, b_t),
                several("bfloat16", (k, m) if a_t else (m, k), (n, k) if b_t else (k, n)),
                partial(turned, a_t=a_t, b_t=b_t),
                out=((m, n), "bfloat16", np.nan),
                large=m > 1000,
            )
    for many, m, n, k in ((2, 256, 256, 128), (3, 300, 264, 200), (16, 1024, 1024, 512)):
        yield Example(
            "kernels.gemm_forms:batched",
            (many, m, n, k),
            several("bfloat16", (many, m, k), (many, n, k)),
            turned,
            out=((many, m, n), "bfloat16", np.nan),
            large=m > 1000,
        )
    for rows, n, k in (((150, 70, 0, 290, 128, 1), 264, 136), ((1500, 700, 0, 2900, 128, 1), 2048, 1024)):
        tiles = sum(-(-r // 128) for r in rows)
        yield Example(
            "kernels.gemm_forms:grouped",
            (sum(rows), n, k, len(rows), tiles),
            partial(_groups, rows, n, k),
            _of_groups,
            out=((sum(rows), n), "bfloat16", np.nan),
            large=n > 1000,
        )


def _groups(rows: tuple[int, ...], n: int, k: int, rng: np.random.Generator) -> list[Array]:
    """A, B, and for each tile of 128 rows its group, its first row, and the end of its group."""
    starts = np.cumsum((0, *rows[:-1]))
    tiles = [(g, s + t, s + r) for g, (s, r) in enumerate(zip(starts, rows)) for t in range(0, r, 128)]
    data = [normal(rng, "bfloat16", sum(rows), k), normal(rng, "bfloat16", len(rows), n, k)]
    return [*data, *(np.array(column, np.int32) for column in zip(*tiles))]


def _of_groups(a: Array, b: Array, group: Array, first: Array, end: Array) -> Array:
    out = np.zeros((len(a), b.shape[1]), np.float32)
    for g, start, stop in zip(group, first, end):
        rows = slice(start, min(start + 128, stop))
        out[rows] = turned(a[rows], b[g])
    return out


def few_rows() -> Iterator[Example]:
    for kernel, m, n, k in (
        ("small_m", 16, 512, 1024),
        ("small_m", 1, 1000, 520),
        ("small_m", 16, 8192, 8192),
        ("spread_gemm", 128, 256, 512),
        ("spread_gemm", 100, 200, 520),
        ("spread_gemm", 128, 8192, 4096),
    ):
        for spread in (0, 3):
            yield Example(
                f"kernels.small_m:{kernel}",
                (m, n, k),
                several("bfloat16", (m, k), (n, k)),
                turned,
                keywords={"spread": spread},
                out=((m, n), "bfloat16", np.nan),
                large=n > 4000,
            )


FAMILIES = (
    matmuls,
    products,
    rowwise,
    attentions,
    convolutions,
    benchmark_gemms,
    other_forms,
    few_rows,
)


def basic() -> list[str]:
    """Modules of ``examples/`` that every backend takes: the others need more memory or types than some have."""
    modules = (e.kernel.partition(":")[0] for family in FAMILIES for e in family())
    return [m for m in dict.fromkeys(modules) if not m.startswith("kernels")]


def cases(only: str = "") -> list[Example]:
    """All of them whose name contains ``only``."""
    # they are made of what is defined here
    from attention_cases import ATTENTIONS
    from linear_cases import FAMILIES as LINEAR
    from product_cases import FAMILIES as PRODUCTS

    families = (*FAMILIES, *ATTENTIONS, *LINEAR, *PRODUCTS)
    return [e for family in families for e in family() if only in e.name]
