"""Atomic updates, with all worker threads at once."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_programs import allocs, at, elements, fragment, kernel, region, tensor, tile, var, whole

from tile_core import settings
from tile_core.errors import Unsupported
from tile_core.expr import cast, const, expr
from tile_core.program import Atomic, AtomicTile, Copy, Fill, Parallel, Store

BLOCKS = 2000


@pytest.mark.parametrize(
    "t", ["float32", "float64", "float16", "bfloat16", "int32", "uint32", "int64", "int8", "uint8"]
)
def test_add_from_many_threads(t):
    out = tensor("out", (1,), t)
    bx = var("bx")
    blocks = BLOCKS if elements(t).itemsize > 2 else 100
    body = [Atomic("add", out, (expr(0),), const(1, t))]
    y = np.zeros(1, elements(t))
    with settings.scope(threads=4):
        kernel([out], body, vars=(bx,), grid=(blocks,))(y)
    assert float(y[0]) == blocks


@pytest.mark.parametrize("t", ["float32", "float64", "float16", "bfloat16", "int32", "uint32", "int64"])
@pytest.mark.parametrize("op", ["max", "min"])
def test_max_and_min(t, op):
    out = tensor("out", (1,), t)
    bx = var("bx")
    value = cast(bx * 7 % 101, t)
    y = np.full(1, 50, elements(t))
    with settings.scope(threads=4):
        kernel([out], [Atomic(op, out, (expr(0),), value)], vars=(bx,), grid=(500,))(y)
    assert float(y[0]) == (100 if op == "max" else 0)


@pytest.mark.parametrize(("op", "start", "wanted"), [("or", 0, 0xFF), ("and", -1, 0), ("xor", 0, 0)])
def test_bits(op, start, wanted):
    out = tensor("out", (1,), "int32")
    bx = var("bx")
    one = const(1, "int32") << (bx % 8)
    value = ~one if op == "and" else one
    y = np.full(1, start, np.int32)
    kernel([out], [Atomic(op, out, (expr(0),), value)], vars=(bx,), grid=(16,))(y)
    assert (y[0] & 0xFF) == wanted


def test_old_value():
    """Each block gets its own ticket."""
    count, out = tensor("count", (1,), "int32"), tensor("out", (BLOCKS,), "int32")
    bx, ticket = var("bx"), var("ticket")
    body = [Atomic("add", count, (expr(0),), expr(1), result=ticket), Store(out, (ticket,), bx)]
    c, y = np.zeros(1, np.int32), np.full(BLOCKS, -1, np.int32)
    with settings.scope(threads=4):
        kernel([count, out], body, vars=(bx,), grid=(BLOCKS,))(c, y)
    assert sorted(y) == list(range(BLOCKS))


@pytest.mark.parametrize("t", ["float32", "float16", "int32"])
def test_load_and_store(t):
    a, b = tensor("A", (4,), t), tensor("B", (4,), t)
    x = var("x", t)
    body = [Atomic("load", a, (expr(1),), None, result=x), Atomic("store", b, (expr(2),), x)]
    p, q = np.arange(4).astype(elements(t)), np.zeros(4, elements(t))
    kernel([a, b], body)(p, q)
    assert list(q.astype(np.float32)) == [0, 0, 1, 0]


def test_outside_is_dropped():
    out = tensor("out", (4,), "int32")
    bx, old = var("bx"), var("old")
    body = [Atomic("add", out, (bx - 2,), expr(1), result=old)]
    y = np.zeros(4, np.int32)
    kernel([out], body, vars=(bx,), grid=(10,))(y)
    assert list(y) == [1, 1, 1, 1]


def test_on_chip_histogram(rng):
    n = 300
    a, b = tensor("A", (n,), "int32"), tensor("B", (8,), "int32")
    s, i = tile("S", (8,), "int32"), var("i")
    body = [
        *allocs(s),
        Fill(whole(s), expr(0)),
        Parallel((i,), (n,), (Atomic("add", s, (at(a, i),), expr(1)),)),
        Copy(whole(s), whole(b)),
    ]
    x, y = rng.integers(0, 8, n).astype(np.int32), np.zeros(8, np.int32)
    kernel([a, b], body)(x, y)
    assert np.array_equal(y, np.bincount(x, minlength=8))


@pytest.mark.parametrize("t", ["float32", "bfloat16", "int32"])
def test_tile(t, rng):
    out = tensor("out", (20, 30), t)
    f = fragment("F", (16, 16), t)
    bx, by, bz = var("bx"), var("by"), var("bz")
    body = [
        *allocs(f),
        Fill(whole(f), const(1, t)),
        AtomicTile("add", region(out, (by * 16, 16), (bx * 16, 16)), whole(f)),
    ]
    y = np.zeros((20, 30), elements(t))
    with settings.scope(threads=4):
        kernel([out], body, vars=(bx, by, bz), grid=(2, 2, 50))(y)
    assert (y.astype(np.float32) == 50).all()


def test_sub_byte_integers_in_global_memory_are_refused():
    out = tensor("out", (4,), "int4")
    with pytest.raises(Unsupported, match="int4"):
        kernel([out], [Atomic("add", out, (expr(0),), const(1, "int4"))])
