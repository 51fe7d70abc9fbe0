"""NaN, infinities, signed zeros, extreme integers and bools through every reduction, scan and vote; against numpy."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

INF, NAN = np.inf, np.nan


@pytest.fixture(params=["cpu", "interpreter"])
def target(request: pytest.FixtureRequest) -> Iterator[str]:
    with tile.target(request.param):
        yield request.param


def rows(shape: tuple[int, ...], type: Any) -> np.ndarray:
    """Numbers with special values here and there; the first row is nothing but NaN, the second one of a single infinity."""
    x = np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32) * 4
    flat = x.reshape(-1)
    flat[::7], flat[3::11], flat[5::13], flat[6::17] = NAN, INF, -INF, -0.0
    x[0] = NAN
    x[1:2] = 1
    x[1, ..., 0] = -INF
    return x.astype(type)


KINDS: dict[str, Any] = {
    "sum": lambda x, d: np.sum(x, d),
    "abssum": lambda x, d: np.sum(np.abs(x), d),
    "max": lambda x, d: np.fmax.reduce(x, d),
    "min": lambda x, d: np.fmin.reduce(x, d),
    "absmax": lambda x, d: np.fmax.reduce(np.abs(x), d),
    "max_nan": lambda x, d: np.maximum.reduce(x, d),
    "min_nan": lambda x, d: np.minimum.reduce(x, d),
    "absmax_nan": lambda x, d: np.maximum.reduce(np.abs(x), d),
    "bitand": lambda x, d: np.bitwise_and.reduce(x, d),
    "bitor": lambda x, d: np.bitwise_or.reduce(x, d),
    "bitxor": lambda x, d: np.bitwise_xor.reduce(x, d),
}


def reduced(x: np.ndarray, kind: str, dim: int, start: np.ndarray | None = None) -> np.ndarray:
    """``x`` reduced along ``dim`` by the kernel; with ``start``, added to it."""
    shape = x.shape[:dim] + x.shape[dim + 1 :] or (1,)
    name = x.dtype.name

    @T.prim_func
    def kernel(X: T.Tensor(x.shape, name), Y: T.Tensor(shape, name)):
        with T.Kernel(1, threads=64):
            f, r = T.alloc_fragment(x.shape, name), T.alloc_fragment(shape, name)
            T.copy(X, f)
            T.copy(Y, r)
            T.reduce(
                f,
                r,
                kind.removesuffix("_nan"),
                dim=dim,
                clear=start is None,
                nan_propagate=kind.endswith("_nan"),
            )
            T.copy(r, Y)

    y = np.zeros(shape, x.dtype) if start is None else start.copy()
    tile.compile(kernel)(x, y)
    return y


def close(found: np.ndarray, expected: np.ndarray) -> None:
    found, expected = (np.asarray(a).astype(np.float64) for a in (found, expected))
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=2e-2, atol=1e-4)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("type", ["float32", "float64", ml_dtypes.bfloat16])
@pytest.mark.parametrize("kind", [k for k in KINDS if not k.startswith("bit")])
def test_floats(target: str, kind: str, type: Any, dim: int) -> None:
    x = rows((9, 21), type)
    with np.errstate(all="ignore"):
        expected = KINDS[kind](x.astype(np.float64), dim)
    close(reduced(x, kind, dim), expected)


@pytest.mark.parametrize("kind", ["sum", "max", "min", "absmax", "bitand", "bitor", "bitxor"])
@pytest.mark.parametrize("type", ["int8", "int32", "uint64"])
@pytest.mark.parametrize("clear", [True, False])
def test_extreme_integers(target: str, kind: str, type: str, clear: bool) -> None:
    low, high = np.iinfo(type).min, np.iinfo(type).max
    x = np.array([[low, high, 0, 1], [high, high, high, 5], [low, low, 3, 2]], type)
    for dim in (0, 1):
        start = None if clear else np.full(x.shape[1 - dim], 3, type)
        with np.errstate(all="ignore"):
            whole = x if start is None else np.concatenate([x, np.expand_dims(start, dim)], dim)
            expected = KINDS[kind](whole, dim).astype(type)
        np.testing.assert_array_equal(reduced(x, kind, dim, start), expected)


@pytest.mark.parametrize("kind", ["max", "absmax", "min", "sum"])
@pytest.mark.parametrize("n", [6, 7, 11])
def test_every_row_takes_part(kind: str, n: int) -> None:
    """Each row in turn decides: with LLVM's maxnum some were left out."""
    for w, dim in itertools.product((4, 8, 10), (0, 1)):
        shape = (n, w) if dim == 0 else (w, n)

        @T.prim_func
        def kernel(X: T.Tensor((n, *shape)), Y: T.Tensor((n, w))):
            with T.Kernel(n, threads=64) as at:
                f, r = T.alloc_fragment(shape, "float32"), T.alloc_fragment((w,), "float32")
                T.copy(X[at, :, :], f)
                T.reduce(f, r, kind, dim=dim)
                T.copy(r, Y[at, :])

        x, y = np.zeros((n, *shape), np.float32), np.zeros((n, w), np.float32)
        for at in range(n):
            np.moveaxis(x[at], dim, 0)[at] = 5 if kind == "max" else -5
        tile.compile(kernel, target="cpu")(x, y)
        np.testing.assert_array_equal(y, KINDS[kind](x, dim + 1))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("type", ["float32", "float16", "int8"])
def test_scans(target: str, type: str, dim: int, reverse: bool) -> None:
    x = rows((6, 10), type) if type.startswith("float") else np.arange(60, dtype=type).reshape(6, 10) * 3

    @T.prim_func
    def kernel(X: T.Tensor(x.shape, type), S: T.Tensor(x.shape, type), M: T.Tensor(x.shape, type)):
        with T.Kernel(1, threads=32):
            a, b = T.alloc_shared(x.shape, type), T.alloc_shared(x.shape, type)
            T.copy(X, a)
            T.cummax(a, b, dim=dim, reverse=reverse)
            T.copy(b, M)
            T.cumsum(a, dim=dim, reverse=reverse)
            T.copy(a, S)

    s, m = np.zeros_like(x), np.zeros_like(x)
    tile.compile(kernel)(x, s, m)
    way = np.flip(x, dim) if reverse else x
    with np.errstate(all="ignore"):
        sums, tops = np.cumsum(way, dim, dtype=x.dtype), np.fmax.accumulate(way, dim)
    close(s, np.flip(sums, dim) if reverse else sums)
    close(m, np.flip(tops, dim) if reverse else tops)


def test_votes_and_bools(target: str) -> None:
    x = np.array([[0.0, NAN, 0.0], [-0.0, 0.0, 0.0], [1.0, -INF, 1e-40]], np.float32)

    @T.prim_func
    def kernel(
        X: T.Tensor((3, 3)),
        V: T.Tensor((3, 2), "bool"),
        B: T.Tensor((3, 3), "bool"),
        R: T.Tensor((3, 3), "bool"),
    ):
        with T.Kernel(1, threads=32):
            f = T.alloc_fragment((3, 3), "float32")
            b, r = T.alloc_fragment((3, 3), "bool"), T.alloc_fragment((3,), "bool")
            T.copy(X, f)
            for i in range(3):
                V[i, 0] = T.any_of(f[i, :])
                V[i, 1] = T.all_of(f[i, :])
            for i, j in T.Parallel(3, 3):
                b[i, j] = (f[i, j] != 0) and not (f[i, j] < 0)
            T.copy(b, B)
            T.reduce_bitand(b, r, dim=1)
            T.copy(r, R[0, :])
            T.reduce_bitor(b, r, dim=1)
            T.copy(r, R[1, :])
            T.reduce_max(b, r, dim=0)
            T.copy(r, R[2, :])

    v, b, r = np.zeros((3, 2), bool), np.zeros((3, 3), bool), np.zeros((3, 3), bool)
    tile.compile(kernel)(x, v, b, r)
    np.testing.assert_array_equal(v, np.stack([(x != 0).any(1), (x != 0).all(1)], 1))
    expected = (x != 0) & ~(x < 0)
    np.testing.assert_array_equal(b, expected)
    np.testing.assert_array_equal(r, [expected.all(1), expected.any(1), expected.any(0)])


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)])
def test_nothing_to_reduce(target: str, shape: tuple[int, int]) -> None:
    x = np.zeros(shape, np.float32)
    for dim in (0, 1):
        if shape[1 - dim] and not shape[dim]:
            assert (reduced(x, "sum", dim) == 0).all()
        elif not shape[1 - dim]:
            reduced(x, "sum", dim)
