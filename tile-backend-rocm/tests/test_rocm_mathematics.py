"""The functions that are expanded here, under the emulator, against numpy and Python's mathematics in double."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hip_products import BACKEND, info_of

import tile_core.language as T
from tile_core.testing import stages
from tile_core.testing.kernels import Case

COUNT = 512
WIDE = (-30.0, 30.0)
# function: of the language, in double, range of arguments
UNARY: list[tuple[str, Callable[[float], float], tuple[float, float]]] = [
    ("sin", math.sin, (-1e4, 1e4)),
    ("cos", math.cos, (-1e4, 1e4)),
    ("tan", math.tan, (-1.5, 1.5)),
    ("tanh", math.tanh, (-12.0, 12.0)),
    ("erf", math.erf, (-6.5, 6.5)),
    ("exp", math.exp, (-80.0, 80.0)),
    ("exp2", lambda x: 2.0**x, (-100.0, 100.0)),
    ("exp10", lambda x: 10.0**x, (-30.0, 30.0)),
    ("log", lambda x: math.log(abs(x)), (-1e6, 1e6)),
    ("log2", lambda x: math.log2(abs(x)), (-1e6, 1e6)),
    ("log10", lambda x: math.log10(abs(x)), (-1e6, 1e6)),
    ("rsqrt", lambda x: 1 / math.sqrt(abs(x)), (-1e6, 1e6)),
    ("sigmoid", lambda x: 1 / (1 + math.exp(-x)), WIDE),
]
ULPS = {"float32": 6 * 2.0**-24, "float64": 16 * 2.0**-53}
POSITIVE = ("log", "log2", "log10", "rsqrt")
NEAR_ZERO = ("sin", "cos", "log", "log2", "log10")


def computed(kernel: Any, dtype: str, *arrays: np.ndarray, rows: int = 1) -> np.ndarray:
    case = Case("f", lambda: kernel, frozenset((dtype,)))
    info = info_of("gfx942")
    out = np.zeros((rows, COUNT), dtype) if rows > 1 else np.zeros(COUNT, dtype)
    given = [*arrays, out]
    for report in BACKEND.emulator(info).run(stages.emit(case, BACKEND, info), given, {}):
        assert report.clean, str(report)
    return out


def all_functions(dtype: str) -> Any:
    """One row of arguments and of results for each function."""
    functions = [getattr(T, name) for name, _, _ in UNARY]
    rows = len(functions)

    @T.prim_func
    def main(A: T.Tensor((rows, COUNT), dtype), B: T.Tensor((rows, COUNT), dtype)):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(COUNT):
                for n, function in enumerate(functions):
                    B[n, i] = function(A[n, i])

    return main


@lru_cache(maxsize=2)
def results(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Arguments and results by row. The last arguments are infinities, NaN and zero."""
    random = np.random.default_rng(1)
    x = np.array([random.uniform(*limits, COUNT) for _, _, limits in UNARY])
    for n, (name, _, limits) in enumerate(UNARY):
        x[n, :4] = limits[0], limits[1], 1e-3, 0.5
        x[n] = np.abs(x[n]) if name in POSITIVE else x[n]
    x[:, -4:] = np.inf, -np.inf, np.nan, 0
    x = x.astype(dtype)
    return x, computed(all_functions(dtype), dtype, x, rows=len(UNARY))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", range(len(UNARY)), ids=[u[0] for u in UNARY])
def test_function(row: int, dtype: str) -> None:
    name, exact, _ = UNARY[row]
    x, got = (a[row, :-4].astype(np.float64) for a in results(dtype))
    wanted = np.array([exact(float(v)) for v in x])
    # the error of a result near zero is that of the argument's rounding, not of the function
    scale = np.maximum(np.abs(wanted), 1.0 if name in NEAR_ZERO else 0.0)
    assert np.max(np.abs(got - wanted) / scale) <= ULPS[dtype]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ends(dtype: str) -> None:
    """Infinities, NaN and zero."""
    wanted = {"tanh": (1, -1, np.nan, 0), "erf": (1, -1, np.nan, 0), "exp": (np.inf, 0, np.nan, 1)}
    wanted |= {"sin": (np.nan, np.nan, np.nan, 0), "log": (np.inf, np.nan, np.nan, -np.inf)}
    for row, (name, _, _) in enumerate(UNARY):
        if name in wanted:
            np.testing.assert_array_equal(results(dtype)[1][row, -4:], np.array(wanted[name], dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_power(dtype: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((COUNT,), dtype), B: T.Tensor((COUNT,), dtype), C: T.Tensor((COUNT,), dtype)):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(COUNT):
                C[i] = T.pow(A[i], B[i])

    random = np.random.default_rng(2)
    a, b = random.uniform(0.01, 50, COUNT).astype(dtype), random.uniform(-8, 8, COUNT).astype(dtype)
    a[:8] = 0, 0, -2, -2, 1, 5, -2, np.inf
    b[:8] = 2, -1, 3, 2, np.nan, 0, 0.5, -1
    got = computed(main, dtype, a, b)
    with np.errstate(all="ignore"):
        wanted = a.astype(np.float64) ** b.astype(np.float64)
    np.testing.assert_allclose(got, wanted.astype(dtype), rtol=4 * ULPS[dtype])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainder(dtype: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((COUNT,), dtype), B: T.Tensor((COUNT,), dtype), C: T.Tensor((COUNT,), dtype)):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(COUNT):
                C[i] = T.truncmod(A[i], B[i])

    random = np.random.default_rng(3)
    a, b = random.uniform(-900, 900, COUNT).astype(dtype), random.uniform(0.5, 7, COUNT).astype(dtype)
    large, least = np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
    a[:12] = 6, -6, 0, 1e10, -1e30, large, large, 1, np.inf, 1, np.nan, least
    b[:12] = 3, 3, 5, 3, 7, 3 * least, -0.7, np.inf, 2, 0, 1, 1
    a[100:300] *= np.logspace(1, 30, 200)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(computed(main, dtype, a, b), np.fmod(a, b))
