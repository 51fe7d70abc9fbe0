"""Copies: ragged edges, conversion, strides, views, overlap."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_programs import allocs, dim, elements, fragment, kernel, region, tensor, tile, var, whole
from hypothesis import given, settings
from hypothesis import strategies as st

from tile_core.dtypes import dtype
from tile_core.expr import Buffer, Space, ceildiv, expr
from tile_core.program import Copy, Fill, Transpose

SHAPES = [(1, 1), (7, 5), (64, 64), (65, 33), (128, 1), (100, 130)]


def through_tile(m, n, block=(32, 16), source="float32", target="float32"):
    """Copy A to B through a tile, block by block."""
    a, b = tensor("A", (m, n), source), tensor("B", (m, n), target)
    s = tile("S", block, source)
    bx, by = var("bx"), var("by")
    box = ((by * block[0], block[0]), (bx * block[1], block[1]))
    body = [*allocs(s), Copy(region(a, *box), whole(s)), Copy(whole(s), region(b, *box))]
    return kernel([a, b], body, vars=(bx, by), grid=(ceildiv(n, block[1]), ceildiv(m, block[0])))


@pytest.mark.parametrize("shape", SHAPES)
def test_ragged_tail(shape, rng):
    a = rng.standard_normal(shape).astype(np.float32)
    b = np.full(shape, np.nan, np.float32)
    through_tile(*shape)(a, b)
    assert np.array_equal(a, b)


@given(st.integers(1, 70), st.integers(1, 70), st.integers(1, 40), st.integers(1, 40))
@settings(max_examples=8, deadline=None)
def test_any_block(m, n, p, q):
    a = np.arange(m * n, dtype=np.float32).reshape(m, n)
    b = np.zeros_like(a)
    through_tile(m, n, (p, q))(a, b)
    assert np.array_equal(a, b)


@pytest.mark.parametrize("start", [(-3, -2), (5, 9), (0, 0), (-20, 0), (40, 40)])
def test_outside_reads_zero_and_is_not_written(start, rng):
    a, b = tensor("A", (16, 12)), tensor("B", (24, 20))
    s = tile("S", (24, 20))
    body = [*allocs(s), Copy(region(a, (start[0], 24), (start[1], 20)), whole(s)), Copy(whole(s), whole(b))]
    x, y = rng.standard_normal((16, 12)).astype(np.float32), np.full((24, 20), 7, np.float32)
    kernel([a, b], body)(x, y)
    wanted = np.zeros((24, 20), np.float32)
    for i in range(24):
        for j in range(20):
            u, v = i + start[0], j + start[1]
            if 0 <= u < 16 and 0 <= v < 12:
                wanted[i, j] = x[u, v]
    assert np.array_equal(y, wanted)
    c = tensor("C", (16, 12))
    back = [*allocs(s), Fill(whole(s), expr(3.0)), Copy(whole(s), region(c, (start[0], 24), (start[1], 20)))]
    z = np.zeros((16, 12), np.float32)
    kernel([c], back)(z)
    u, v = np.meshgrid(np.arange(16) - start[0], np.arange(12) - start[1], indexing="ij")
    inside = (u >= 0) & (u < 24) & (v >= 0) & (v < 20)
    assert np.array_equal(z, np.where(inside, 3, 0))


def test_symbolic_shape(rng):
    m, n = dim("m"), dim("n")
    a, b = tensor("A", (m, n)), tensor("B", (m, n))
    s = tile("S", (32, 32))
    bx, by = var("bx"), var("by")
    box = ((by * 32, 32), (bx * 32, 32))
    body = [*allocs(s), Copy(region(a, *box), whole(s)), Copy(whole(s), region(b, *box))]
    run = kernel([a, b], body, vars=(bx, by), grid=(ceildiv(n, 32), ceildiv(m, 32)))
    for shape in ((1, 1), (64, 32), (33, 95)):
        x = rng.standard_normal(shape).astype(np.float32)
        y = np.zeros_like(x)
        run(x, y, m=shape[0], n=shape[1])
        assert np.array_equal(x, y)


def test_symbolic_strides(rng):
    m, n, ld = dim("m"), dim("n"), dim("ld", "int64")
    a, b = tensor("A", (m, n), strides=(ld, 1)), tensor("B", (m, n))
    s = tile("S", (16, 16))
    body = [
        *allocs(s),
        Copy(region(a, (0, 16), (0, 16)), whole(s)),
        Copy(whole(s), region(b, (0, 16), (0, 16))),
    ]
    x = rng.standard_normal((10, 40)).astype(np.float32)
    y = np.zeros((10, 7), np.float32)
    kernel([a, b], body)(x, y, m=10, n=7, ld=40)
    assert np.array_equal(y, x[:, :7])


PAIRS = [
    ("float32", "float16"),
    ("float16", "float32"),
    ("float32", "bfloat16"),
    ("bfloat16", "float16"),
    ("float32", "float8_e4m3fn"),
    ("float8_e5m2", "float32"),
    ("float64", "float16"),
    ("float64", "float32"),
    ("int32", "float32"),
    ("int8", "int32"),
    ("int32", "int8"),
    ("uint8", "float16"),
    ("float32", "int32"),
    ("bool", "float32"),
    ("float32", "bool"),
    ("int64", "int32"),
]


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_conversion(source, target, rng):
    x = (rng.standard_normal((33, 21)) * 20).astype(elements(source))
    y = np.zeros((33, 21), elements(target))
    through_tile(33, 21, source=source, target=target)(x, y)
    assert np.array_equal(y.view(np.uint8), x.astype(elements(target)).view(np.uint8))


@pytest.mark.parametrize("t", ["float16", "bfloat16", "float8_e4m3fn", "float32"])
def test_same_type_keeps_all_bits(t):
    width = elements(t).itemsize
    x = np.arange(256, dtype=np.uint8).reshape(-1, width).view(elements(t))
    y = np.zeros_like(x)
    through_tile(*x.shape, source=t, target=t)(x, y)
    assert np.array_equal(x.view(np.uint8), y.view(np.uint8))


def test_leading_dimensions_drop(rng):
    a, b = tensor("A", (4, 8, 16)), tensor("B", (8, 16))
    f = fragment("F", (1, 8, 16))
    body = [
        *allocs(f),
        Copy(region(a, 2, (0, 8), (0, 16)), whole(f)),
        Copy(whole(f), region(b, (0, 8), (0, 16))),
    ]
    x, y = rng.standard_normal((4, 8, 16)).astype(np.float32), np.zeros((8, 16), np.float32)
    kernel([a, b], body)(x, y)
    assert np.array_equal(y, x[2])


def test_point_outside_reads_zero():
    a, b = tensor("A", (4, 8)), tensor("B", (8,))
    f = fragment("F", (8,))
    body = [*allocs(f), Copy(region(a, 9, (0, 8)), whole(f)), Copy(whole(f), whole(b))]
    y = np.ones(8, np.float32)
    kernel([a, b], body)(np.ones((4, 8), np.float32), y)
    assert not y.any()


def test_view_shares_bits(rng):
    a, b = tensor("A", (8, 16)), tensor("B", (32, 8), "uint16")
    s = tile("S", (8, 16))
    view = Buffer("V", (32, 8), dtype("uint16"), Space.SHARED, source=s)
    body = [*allocs(s), Copy(whole(a), whole(s)), Copy(whole(view), whole(b))]
    x, y = rng.standard_normal((8, 16)).astype(np.float32), np.zeros((32, 8), np.uint16)
    kernel([a, b], body)(x, y)
    assert np.array_equal(y.reshape(-1), x.view(np.uint16).reshape(-1))


def test_view_of_a_small_buffer(rng):
    a, b = tensor("A", (4,)), tensor("B", (2, 2), "int32")
    s = fragment("S", (4,))
    view = Buffer("V", (2, 2), dtype("int32"), Space.FRAGMENT, source=s)
    body = [*allocs(s), Copy(whole(a), whole(s)), Copy(whole(view), whole(b))]
    x, y = rng.standard_normal(4).astype(np.float32), np.zeros((2, 2), np.int32)
    kernel([a, b], body)(x, y)
    assert np.array_equal(y.reshape(-1), x.view(np.int32))


def test_overlapping_copy():
    a = tensor("A", (64,))
    s = tile("S", (64,))
    body = [
        *allocs(s),
        Copy(whole(a), whole(s)),
        Copy(region(s, (0, 60)), region(s, (4, 60))),
        Copy(whole(s), whole(a)),
    ]
    x = np.arange(64, dtype=np.float32)
    y = x.copy()
    kernel([a], body)(y)
    assert np.array_equal(y, np.concatenate([x[:4], x[:60]]))


@pytest.mark.parametrize("t", ["float32", "float16", "bool", "float8_e4m3fn", "int4"])
def test_fill(t):
    b = tensor("B", (9, 7), t)
    kernel([b], [Fill(whole(b), expr(1).astype(t))])(y := np.zeros((9, 7), elements(t)))
    assert np.array_equal(y.astype(np.float32), np.ones((9, 7)))


@pytest.mark.parametrize("shape", [(8, 8), (32, 48), (3, 5, 7)])
def test_transpose(shape, rng):
    turned = (*shape[:-2], shape[-1], shape[-2])
    a, b = tensor("A", shape), tensor("B", turned)
    s, t = tile("S", shape), tile("T", turned)
    body = [*allocs(s, t), Copy(whole(a), whole(s)), Transpose(whole(s), whole(t)), Copy(whole(t), whole(b))]
    x, y = rng.standard_normal(shape).astype(np.float32), np.zeros(turned, np.float32)
    kernel([a, b], body)(x, y)
    assert np.array_equal(y, np.swapaxes(x, -1, -2))


def test_transpose_in_place(rng):
    a = tensor("A", (16, 16))
    s = tile("S", (16, 16))
    body = [*allocs(s), Copy(whole(a), whole(s)), Transpose(whole(s), whole(s)), Copy(whole(s), whole(a))]
    x = rng.standard_normal((16, 16)).astype(np.float32)
    y = x.copy()
    kernel([a], body)(y)
    assert np.array_equal(y, x.T)


def test_one_tensor_passed_twice():
    """Tensors may be the same memory: nothing is assumed about them."""
    a, b = tensor("A", (64,)), tensor("B", (64,))
    f = fragment("F", (64,))
    body = [*allocs(f), Copy(whole(a), whole(f)), Fill(whole(b), expr(1.0)), Copy(whole(a), whole(b))]
    x = np.full(64, 5, np.float32)
    kernel([a, b], body)(x, x)
    assert np.array_equal(x, np.ones(64))
