"""Vector moves, reductions by shuffles and shared bytes, under the emulator: odd shapes, threads and types."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import Any

import elementwise_cases as kernels
import oracle
import pytest

from tile_backend_cuda.backend import CudaBackend
from tile_core.hardware import Target
from tile_core.testing import stages
from tile_core.testing.kernels import Case

LOOSE = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-4}
BACKEND = CudaBackend()
MODES = ("late", "random")


def case(name: str, make: Any, *dtypes: str) -> Case:
    loose = max(LOOSE.get(d, 0) for d in dtypes)
    return Case(name, make, frozenset(dtypes), rtol=loose, atol=loose)


def source_of(case: Case, arch: str = "sm_80") -> Any:
    return stages.emit(case, BACKEND, BACKEND.info(Target("cuda", arch)))


def passes(case: Case) -> None:
    oracle.passes(case, source_of(case), MODES)


COPIES = [
    *((64, 64, 32, 32, 128, a, b) for a, b in (("float16", "float32"), ("float32", "bfloat16"))),
    *((33, 104, 16, 40, t, "float16", "float16") for t in (32, 96, 384)),
    *((7, 176, 7, 176, t, "int8", "int32") for t in (48, 128)),
    *((5, 33, 3, 33, 64, "float32", d) for d in ("float16", "float32")),
    (1, 1, 1, 1, 32, "float16", "float32"),
    (20, 72, 8, 24, 100, "bfloat16", "float16"),
    (16, 128, 16, 128, 33, "uint8", "uint8"),
]


@pytest.mark.parametrize("how", COPIES, ids=str)
def test_copies(how: Any, emulator: None):
    passes(case(f"copy {how}", lambda: kernels.through_shared(*how), *how[5:]))


@pytest.mark.parametrize(
    ("n", "block", "threads"), [(1000, 256, 32), (1001, 256, 32), (7, 64, 32), (300, 96, 48), (513, 512, 64)]
)
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
def test_tails(n: int, block: int, threads: int, dtype: str, emulator: None):
    passes(case(f"tail {n} {block}", lambda: kernels.tail(n, block, threads, dtype), dtype))


@pytest.mark.parametrize(("m", "n", "threads"), [(8, 64, 64), (3, 104, 96), (7, 33, 32)])
@pytest.mark.parametrize("dtype", ["float16", "int32"])
def test_fills(m: int, n: int, threads: int, dtype: str, emulator: None):
    passes(case(f"fill {m} {n}", lambda: kernels.filled(m, n, threads, dtype), dtype))


SHAPES = [(1, 1), (1, 104), (7, 33), (33, 7), (64, 64), (16, 176), (104, 1)]
REDUCTIONS = [
    (*shape, threads, dtype, kind, dim)
    for n, (shape, dim, kind) in enumerate(itertools.product(SHAPES, (0, 1), ("sum", "max", "absmax")))
    for threads, dtype in [
        ((32, 48, 64, 128, 33, 384)[n % 6], ("float32", "float16", "int32", "bfloat16", "float64")[n % 5])
    ]
]


@pytest.mark.parametrize("how", REDUCTIONS, ids=str)
def test_reductions(how: Any, emulator: None):
    passes(case(f"reduce {how}", lambda: kernels.reduced(*how, clear=how[5] == 0), how[3]))


@pytest.mark.parametrize(("m", "n", "threads"), [(2, 512, 128), (3, 104, 96), (8, 33, 64), (1, 176, 384)])
def test_results_are_used_again(m: int, n: int, threads: int, emulator: None):
    passes(case(f"normalised {m} {n}", lambda: kernels.normalised(m, n, threads, "float16"), "float16"))


def without(text: str, number: int) -> str:
    """The text without one of its barriers."""
    count = itertools.count()
    return re.sub(r"__syncthreads\(\);", lambda m: ";" if next(count) == number else m[0], text)


MUTANTS = [
    case("normalised across warps", lambda: kernels.normalised(2, 512, 128, "float16"), "float16"),
    case(
        "through shared", lambda: kernels.through_shared(33, 104, 16, 40, 96, "float16", "float16"), "float16"
    ),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_every_barrier_is_needed(mutant: Case, emulator: None):
    source = source_of(mutant)
    count = source.text.count("__syncthreads();")
    assert count >= 2
    for n in range(count):
        try:
            reports = list(oracle.reports(mutant, replace(source, text=without(source.text, n)), MODES))
        except AssertionError:
            continue
        assert not all(r.clean for r in reports), f"barrier {n} of {count} is not missed"
