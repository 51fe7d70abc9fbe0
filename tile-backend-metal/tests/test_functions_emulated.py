"""Scalar functions, atomics and exchanges of the head of a source, as emulated source against numpy."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

pytestmark = pytest.mark.usefixtures("mac")

N = 512
FUNCTIONS = {
    "exp": (T.exp, np.exp),
    "exp2": (T.exp2, np.exp2),
    "exp10": (T.exp10, lambda x: np.power(10.0, x)),
    "sin": (T.sin, np.sin),
    "cos": (T.cos, np.cos),
    "tanh": (T.tanh, np.tanh),
    "sigmoid": (T.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "erf": (T.erf, np.vectorize(math.erf)),
    "floor": (T.floor, np.floor),
    "ceil": (T.ceil, np.ceil),
    "round": (T.round, np.round),
    "trunc": (T.trunc, np.trunc),
    "abs": (T.abs, np.abs),
    "__exp": (T.__exp, np.exp),
    "__sin": (T.__sin, np.sin),
}
POSITIVE = {
    "log": (T.log, np.log),
    "log2": (T.log2, np.log2),
    "log10": (T.log10, np.log10),
    "sqrt": (T.sqrt, np.sqrt),
    "rsqrt": (T.rsqrt, lambda x: 1 / np.sqrt(x)),
    "__log": (T.__log, np.log),
    "fast_rcp": (T.fast_rcp, lambda x: 1 / x),
    "ieee_frcp": (T.ieee_frcp, lambda x: 1 / x),
    "tan": (lambda x: T.tan(x / 4), lambda x: np.tan(x / 4)),
}


def applied(functions: list[Any], dtype: str, out: str) -> Any:
    """A kernel of one input; each function gives a row of the output."""

    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((len(functions), N), out)):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(N):
                for n, f in enumerate(functions):
                    B[n, i] = f(A[i])

    return main


def results(functions: list[Any], a: Any, out: str) -> Any:
    b = np.zeros((len(functions), N), np.dtype(getattr(ml_dtypes, out, None) or out))
    tile.compile(applied(functions, a.dtype.name, out))(a, b)
    return b


@pytest.mark.parametrize(("table", "low"), [(FUNCTIONS, -5), (POSITIVE, 0.01)], ids=["all", "positive"])
def test_functions_of_one_number(table: dict[str, Any], low: float) -> None:
    a = np.linspace(low, 5, N).astype(np.float32)
    got = results([f for f, _ in table.values()], a, "float32")
    for row, (name, (_, reference)) in zip(got, table.items(), strict=True):
        wanted = reference(a.astype(np.float64))
        np.testing.assert_allclose(row, wanted, rtol=2e-6, atol=1e-6, err_msg=name)


def test_numbers_that_are_none() -> None:
    a = np.resize(np.array([np.nan, np.inf, -np.inf, 1, 0], np.float32), N)
    got = results([T.isnan, T.isinf, T.isfinite], a, "bool")
    np.testing.assert_array_equal(got, [np.isnan(a), np.isinf(a), np.isfinite(a)])
    erf = results([T.erf], a, "float32")[0]
    np.testing.assert_array_equal(erf[:3], [np.nan, 1, -1])


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64"])
def test_bits_of_integers(dtype: str) -> None:
    kind = np.dtype(dtype)
    a = np.random.default_rng(0).integers(
        np.iinfo(kind).min, np.iinfo(kind).max, N, dtype=kind, endpoint=True
    )
    a[:2] = 0, 1
    width = 8 * kind.itemsize
    bits = [int(x) & (1 << width) - 1 for x in a]
    both = [lambda x: T.cast(T.popcount(x), "int32"), lambda x: T.cast(T.clz(x), "int32")]
    wanted = [[x.bit_count() for x in bits], [width - x.bit_length() for x in bits]]
    np.testing.assert_array_equal(results(both, a, "int32"), wanted)


@pytest.mark.parametrize("dtype", ["int16", "int64"])
def test_division_rounds_down(dtype: str) -> None:
    a = np.random.default_rng(0).integers(-1000, 1000, N).astype(dtype)
    got = results([lambda x: x // 7, lambda x: x % -5], a, dtype)
    np.testing.assert_array_equal(got, [a // 7, a % -5])


def test_wide_constants() -> None:
    kernel = tile.compile(applied([lambda x: x * 3_000_000_019 - 2**40], "int64", "int64"))
    a, b = np.arange(N, dtype=np.int64), np.zeros((1, N), np.int64)
    kernel(a, b)
    np.testing.assert_array_equal(b[0], a * 3_000_000_019 - 2**40)
    assert "3000000019L" in kernel.source
    assert "LL" not in kernel.source


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_narrow_floats(dtype: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    a = (np.random.default_rng(0).standard_normal(N) * 20).astype(np.float32)
    a[:4] = 0, -0.0, np.nan, 1e-7
    with np.errstate(all="ignore"):
        wanted = a.astype(kind)
        down, doubled = results([lambda x: x, lambda x: T.cast(x, dtype) * 2], a, dtype)
        np.testing.assert_array_equal(down.astype(np.float32), wanted.astype(np.float32))
        twice = (wanted.astype(np.float32) * 2).astype(kind)
        np.testing.assert_array_equal(doubled.astype(np.float32), twice.astype(np.float32))


@pytest.mark.parametrize("dtype", ["int32", "uint32", "float32", "float16", "bfloat16", "int16", "uint16"])
def test_atomics(dtype: str) -> None:
    """Small whole numbers, of which every sum is exact; two places share a word, and one ends the buffer."""
    kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)

    @T.prim_func
    def main(A: T.Tensor((96,), dtype), B: T.Tensor((2, 3, 3), dtype)):
        with T.Kernel(1, threads=96):
            near = T.alloc_shared((3, 4), dtype)
            T.fill(near, 2)
            for i in T.Parallel(96):
                T.atomic_add(near[0, i % 3], A[i])
                T.atomic_max(near[1, i % 3], A[i])
                T.atomic_min(near[2, i % 3], A[i])
                T.atomic_add(B[1, 0, i % 3], A[i])
                T.atomic_max(B[1, 1, i % 3], A[i])
                T.atomic_min(B[1, 2, i % 3], A[i])
            for i, j in T.Parallel(3, 3):
                B[0, i, j] = near[i, j]

    a = np.random.default_rng(0).integers(1, 5, 96).astype(kind)
    b = np.full((2, 3, 3), 2).astype(kind)
    kernel = tile.compile(main)
    kernel(a, b)
    columns = [np.append(a[n::3].astype(np.float64), 2) for n in range(3)]
    wanted = [[c.sum() for c in columns], [c.max() for c in columns], [c.min() for c in columns]]
    np.testing.assert_array_equal(b.astype(np.float64), [wanted, wanted])
    assert "tile_atomic_add_threadgroup(&near" in kernel.source
    assert "tile_atomic_add_device(&B" in kernel.source


def test_order_between_blocks() -> None:
    """A fence on both sides of an atomic that asks for it, in a language that has fences."""

    @T.prim_func
    def main(A: T.Tensor((4,), "int32"), B: T.Tensor((1,), "int32")):
        with T.Kernel(4, threads=32) as bx:
            A[bx] = bx
            T.atomic_add(B[0], 1, memory_order="acq_rel")

    a, b = np.zeros(4, np.int32), np.zeros(1, np.int32)
    tile.compile(main, target="metal:apple9,language=3.2")(a, b)
    assert b[0] == 4
    assert a.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", ["float32", "int64", "float16"])
def test_sums_and_prefixes_across_lanes(dtype: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 64), dtype), B: T.Tensor((4,), dtype), C: T.Tensor((4, 64), dtype)):
        with T.Kernel(1, threads=64):
            x = T.alloc_fragment((4, 64), dtype)
            y = T.alloc_fragment((4,), dtype)
            s = T.alloc_shared((4, 64), dtype)
            T.copy(A, x)
            T.reduce_sum(x, y, dim=1)
            T.copy(y, B)
            T.copy(A, s)
            T.cumsum(s, dim=1)
            T.copy(s, C)

    a = np.random.default_rng(0).integers(0, 5, (4, 64)).astype(dtype)
    b, c = np.zeros(4, dtype), np.zeros((4, 64), dtype)
    kernel = tile.compile(main)
    kernel(a, b, c)
    assert "tile_shuffle_" in kernel.source
    np.testing.assert_array_equal(b, a.sum(axis=1))
    np.testing.assert_array_equal(c, np.cumsum(a, axis=1))


def test_memory_behind_a_pointer() -> None:
    @T.prim_func
    def main(P: T.ptr("float16"), B: T.Tensor((37,), "float16")):
        with T.Kernel(1, threads=32):
            T.copy(T.make_tensor(P, (37,), "float16"), B)

    a, b = np.arange(37, dtype=np.float16), np.zeros(37, np.float16)
    kernel = tile.compile(main)
    kernel(a, b)
    assert "device void* P [[buffer(0)]]" in kernel.source
    np.testing.assert_array_equal(b, a)
