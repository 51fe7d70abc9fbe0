"""Reductions, scans and tests of whole tiles."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_programs import allocs, at, elements, fragment, kernel, tensor, tile, var, whole

from tile_core.dtypes import dtype
from tile_core.expr import cast
from tile_core.program import Copy, Quantify, Reduce, Scan, Store

REFERENCE = {
    "sum": np.sum,
    "max": np.max,
    "min": np.min,
    "absmax": lambda x, axis: np.max(np.abs(x), axis),
    "abssum": lambda x, axis: np.sum(np.abs(x), axis),
    "bitand": np.bitwise_and.reduce,
    "bitor": np.bitwise_or.reduce,
    "bitxor": np.bitwise_xor.reduce,
    "any": np.any,
    "all": np.all,
}


def reduced(kind, x, axis, source, target, keep=False, clear=True, start=None, **options):
    shape = x.shape
    out = tuple(1 if d == axis else n for d, n in enumerate(shape) if keep or d != axis)
    a, b = tensor("A", shape, source), tensor("B", out, target)
    s, f = tile("S", shape, source), fragment("F", out, target)
    body = [
        *allocs(s, f),
        Copy(whole(a), whole(s)),
        Copy(whole(b), whole(f)),
        Reduce(kind, whole(s), whole(f), axis, clear, **options),
        Copy(whole(f), whole(b)),
    ]
    y = np.zeros(out, elements(target)) if start is None else start.astype(elements(target))
    kernel([a, b], body)(x, y)
    return y


def data(rng, shape, t):
    kind = dtype(t)
    if kind.is_float:
        return rng.standard_normal(shape).astype(np.float32).astype(elements(t))
    if kind.is_bool:
        return rng.integers(0, 2, shape).astype(bool)
    return rng.integers(-50 if kind.kind == "int" else 0, 50, shape).astype(elements(t))


@pytest.mark.parametrize("kind", ["sum", "max", "min", "absmax", "abssum"])
@pytest.mark.parametrize("t", ["float32", "float64", "float16", "int32", "uint8"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((33, 200), 1), ((33, 50), 0), ((4, 5, 64), 1), ((7,), 0), ((4, 5), 1), ((16, 1), 1)]
)
def test_kinds(kind, t, shape, axis, rng):
    x = data(rng, shape, t)
    if t == "uint8":
        x //= 64
    got = reduced(kind, x, axis, t, t, keep=len(shape) == 1)
    wide = x.astype(np.float64) if dtype(t).is_float else x.astype(np.int64)
    wanted = REFERENCE[kind](wide, axis)
    tolerance = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12}.get(t, 0)
    assert np.allclose(
        got.astype(np.float64).reshape(np.shape(wanted)), wanted, rtol=tolerance, atol=tolerance * 4
    )


@pytest.mark.parametrize("kind", ["bitand", "bitor", "bitxor"])
@pytest.mark.parametrize("axis", [0, 1])
def test_bits(kind, axis, rng):
    x = rng.integers(0, 2**31, (20, 30)).astype(np.int32)
    assert np.array_equal(reduced(kind, x, axis, "int32", "int32"), REFERENCE[kind](x, axis=axis))


@pytest.mark.parametrize("kind", ["any", "all"])
@pytest.mark.parametrize("t", ["bool", "float32", "int32"])
def test_logic(kind, t, rng):
    x = rng.integers(0, 4, (20, 3)).astype(elements(t))
    assert np.array_equal(reduced(kind, x, 1, t, "bool"), REFERENCE[kind](x != 0, 1))
    got = reduced(kind, x, 1, t, t)
    assert np.array_equal(got.astype(bool), REFERENCE[kind](x != 0, 1))


@pytest.mark.parametrize("n", [5, 100])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", ["max", "min", "absmax"])
def test_nan(kind, axis, n, rng):
    x = rng.standard_normal((n, n)).astype(np.float32)
    x[3, 2] = np.nan
    skipping = {"max": np.nanmax, "min": np.nanmin, "absmax": lambda v, a: np.nanmax(np.abs(v), a)}[kind]
    assert np.array_equal(reduced(kind, x, axis, "float32", "float32"), skipping(x, axis))
    got = reduced(kind, x, axis, "float32", "float32", propagate_nan=True)
    assert np.array_equal(got, REFERENCE[kind](x, axis), equal_nan=True)


@pytest.mark.parametrize("kind", ["sum", "max", "min"])
@pytest.mark.parametrize("axis", [0, 1])
def test_old_value_takes_part(kind, axis, rng):
    x = rng.standard_normal((40, 40)).astype(np.float32)
    start = rng.standard_normal(40).astype(np.float32) * 10
    got = reduced(kind, x, axis, "float32", "float32", clear=False, start=start.copy())
    combine = {"sum": np.add, "max": np.maximum, "min": np.minimum}[kind]
    assert np.allclose(got, combine(start, REFERENCE[kind](x, axis)), rtol=1e-5, atol=1e-5)


def test_sum_in_the_type_of_the_result(rng):
    x = np.full((4, 300), 100, np.int8)
    assert np.array_equal(reduced("sum", x, 1, "int8", "int32"), np.full(4, 30000))
    h = np.full((4, 5000), 1, np.float16)
    assert np.array_equal(reduced("sum", h, 1, "float16", "float32"), np.full(4, 5000))


@pytest.mark.parametrize("keep", [False, True])
def test_kept_dimension(keep, rng):
    x = rng.standard_normal((6, 7, 8)).astype(np.float32)
    got = reduced("sum", x, 2, "float32", "float32", keep=keep)
    assert np.allclose(got, x.sum(2, keepdims=keep), atol=1e-5)


@pytest.mark.parametrize("kind", ["sum", "max"])
@pytest.mark.parametrize("t", ["float32", "int32", "float16"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("in_place", [False, True])
def test_scan(kind, t, axis, reverse, in_place, rng):
    x = rng.integers(-9, 9, (17, 23)).astype(elements(t))
    a, b = tensor("A", x.shape, t), tensor("B", x.shape, t)
    s, d = tile("S", x.shape, t), tile("D", x.shape, t)
    target = s if in_place else d
    body = [
        *allocs(s, d),
        Copy(whole(a), whole(s)),
        Scan(kind, whole(s), whole(target), axis, reverse),
        Copy(whole(target), whole(b)),
    ]
    y = np.zeros_like(x)
    kernel([a, b], body)(x, y)
    work = np.flip(x, axis) if reverse else x
    wanted = (np.cumsum(work, axis) if kind == "sum" else np.maximum.accumulate(work, axis)).astype(x.dtype)
    assert np.array_equal(y, np.flip(wanted, axis) if reverse else wanted)


@pytest.mark.parametrize("kind", ["any", "all"])
@pytest.mark.parametrize("fill", [0, 1, 2])
def test_quantify(kind, fill):
    x = np.zeros((9, 11), np.float32) if fill == 0 else np.ones((9, 11), np.float32)
    if fill == 2:
        x[4, 4] = 0
    a, b = tensor("A", x.shape), tensor("B", (1,), "int32")
    s, found = tile("S", x.shape), var("found", "bool")
    body = [
        *allocs(s),
        Copy(whole(a), whole(s)),
        Quantify(kind, whole(s), found),
        Store(b, (at(b, 0).indices[0],), cast(found, "int32")),
    ]
    y = np.zeros(1, np.int32)
    kernel([a, b], body)(x, y)
    assert y[0] == int(getattr(np, kind)(x))
