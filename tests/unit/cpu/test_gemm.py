"""Matrix products of every type, shape and order."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_programs import allocs, elements, fragment, kernel, region, tensor, tile, var, whole
from hypothesis import given, settings
from hypothesis import strategies as st

from tile_core.dtypes import dtype
from tile_core.errors import KernelError
from tile_core.expr import ceildiv, const, expr
from tile_core.program import Copy, Fill, For, Gemm

SHAPES = [
    (1, 1, 1),
    (1, 104, 33),
    (3, 17, 5),
    (16, 16, 16),
    (33, 104, 33),
    (64, 64, 64),
    (128, 96, 20),
    (7, 200, 1),
]


def product(m, n, k, source="float32", total="float32", flip_a=False, flip_b=False, clear=False, space=tile):
    """C += A @ B in one tile."""
    sa, sb = (k, m) if flip_a else (m, k), (n, k) if flip_b else (k, n)
    a, b, c = tensor("A", sa, source), tensor("B", sb, source), tensor("C", (m, n), total)
    s, t, f = space("S", sa, source), space("T", sb, source), fragment("F", (m, n), total)
    body = [
        *allocs(s, t, f),
        Copy(whole(a), whole(s)),
        Copy(whole(b), whole(t)),
        Copy(whole(c), whole(f)),
        Gemm(whole(s), whole(t), whole(f), flip_a, flip_b, clear=clear),
        Copy(whole(f), whole(c)),
    ]
    return kernel([a, b, c], body)


def check(
    m, n, k, rng, source="float32", total="float32", flip_a=False, flip_b=False, clear=False, tolerance=2e-5
):
    if dtype(source).is_float:
        a, b = (rng.standard_normal(s).astype(np.float32).astype(elements(source)) for s in ((m, k), (k, n)))
        c = rng.standard_normal((m, n)).astype(np.float32).astype(elements(total))
    else:
        a, b = (rng.integers(-8, 8, s).astype(elements(source)) for s in ((m, k), (k, n)))
        c = rng.integers(-100, 100, (m, n)).astype(elements(total))
    x, y, z = (np.ascontiguousarray(v) for v in (a.T if flip_a else a, b.T if flip_b else b, c.copy()))
    product(m, n, k, source, total, flip_a, flip_b, clear)(x, y, z)
    wide = np.float64 if dtype(source).is_float else np.int64
    wanted = a.astype(wide) @ b.astype(wide) + (0 if clear else c.astype(wide))
    if wide is np.int64:
        assert np.array_equal(z, wanted.astype(z.dtype))
    else:
        assert np.allclose(z.astype(np.float64), wanted, rtol=tolerance, atol=tolerance * np.sqrt(k) * 4)


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape, rng):
    check(*shape, rng)


@pytest.mark.parametrize("flip_a", [False, True])
@pytest.mark.parametrize("flip_b", [False, True])
@pytest.mark.parametrize("shape", [(33, 104, 20), (64, 32, 48)])
def test_transposed(flip_a, flip_b, shape, rng):
    check(*shape, rng, flip_a=flip_a, flip_b=flip_b)


TYPES = [
    ("float16", "float32", 2e-5),
    ("bfloat16", "float32", 2e-5),
    ("float8_e4m3fn", "float32", 2e-5),
    ("float8_e5m2", "float32", 2e-5),
    ("float16", "float16", 2e-3),
    ("bfloat16", "bfloat16", 2e-2),
    ("float64", "float64", 1e-12),
    ("int8", "int32", 0),
    ("uint8", "int32", 0),
    ("int32", "int32", 0),
    ("int16", "int64", 0),
    ("int4", "int32", 0),
]


@pytest.mark.parametrize(("source", "total", "tolerance"), TYPES)
@pytest.mark.parametrize("shape", [(33, 40, 31), (64, 64, 32)])
def test_types(source, total, tolerance, shape, rng):
    if source == "uint8":
        rng = np.random.default_rng(3)
        a = rng.integers(0, 255, (4, 4)).astype(np.uint8)
        z = np.zeros((4, 4), np.int32)
        product(4, 4, 4, source, total)(a, a.copy(), z)
        assert np.array_equal(z, a.astype(np.int32) @ a.astype(np.int32))
        return
    check(*shape, rng, source, total, tolerance=tolerance)


def test_clear(rng):
    check(40, 24, 16, rng, clear=True)
    check(40, 24, 16, rng, "float16", "float16", clear=True, tolerance=2e-3)


@given(st.integers(1, 70), st.integers(1, 70), st.integers(1, 40), st.booleans(), st.booleans())
@settings(max_examples=15, deadline=None)
def test_any_shape(m, n, k, flip_a, flip_b):
    check(m, n, k, np.random.default_rng(1), flip_a=flip_a, flip_b=flip_b)


@pytest.mark.parametrize("shape", [(100, 70, 50), (128, 128, 128), (33, 17, 65)])
def test_blocked_with_ragged_edges(shape, rng):
    m, n, k = shape
    bm, bn, bk = 32, 48, 16
    a, b, c = tensor("A", (m, k)), tensor("B", (k, n)), tensor("C", (m, n))
    s, t, f = tile("S", (bm, bk)), tile("T", (bk, bn)), fragment("F", (bm, bn))
    bx, by, ko = var("bx"), var("by"), var("ko")
    body = [
        *allocs(s, t, f),
        Fill(whole(f), const(0.0, "float32")),
        For(
            ko,
            expr(0),
            ceildiv(k, bk),
            (
                Copy(region(a, (by * bm, bm), (ko * bk, bk)), whole(s)),
                Copy(region(b, (ko * bk, bk), (bx * bn, bn)), whole(t)),
                Gemm(whole(s), whole(t), whole(f)),
            ),
            kind="pipelined",
            num_stages=3,
        ),
        Copy(whole(f), region(c, (by * bm, bm), (bx * bn, bn))),
    ]
    x, y = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
    z = np.zeros((m, n), np.float32)
    kernel([a, b, c], body, vars=(bx, by), grid=(ceildiv(n, bn), ceildiv(m, bm)))(x, y, z)
    assert np.allclose(z, x @ y, rtol=1e-4, atol=1e-4)


def test_part_of_a_tile(rng):
    """Operands may be boxes of larger tiles, and of global memory."""
    a, b, c = tensor("A", (40, 40)), tensor("B", (40, 40)), tensor("C", (20, 24))
    s, f = tile("S", (40, 40)), fragment("F", (20, 24))
    body = [
        *allocs(s, f),
        Copy(whole(a), whole(s)),
        Gemm(region(s, (3, 20), (5, 16)), region(b, (7, 16), (9, 24)), whole(f), clear=True),
        Copy(whole(f), whole(c)),
    ]
    x, y = (rng.standard_normal((40, 40)).astype(np.float32) for _ in range(2))
    z = np.zeros((20, 24), np.float32)
    kernel([a, b, c], body)(x, y, z)
    assert np.allclose(z, x[3:23, 5:21] @ y[7:23, 9:33], rtol=1e-4, atol=1e-5)


def test_shapes_that_do_not_fit():
    s, t, f = tile("S", (8, 8)), tile("T", (9, 8)), fragment("F", (8, 8))
    with pytest.raises(KernelError, match=r"gemm: b \(T\) has shape \(9, 8\), \(8, 8\) is needed"):
        kernel([tensor("A", (1,))], [*allocs(s, t, f), Gemm(whole(s), whole(t), whole(f))])
