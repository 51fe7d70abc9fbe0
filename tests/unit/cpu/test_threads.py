"""Kernels that name their threads: barriers, private state, divergence."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_programs import allocs, at, cell, fragment, kernel, region, tensor, tile, var, whole

from tile_core.errors import Unsupported
from tile_core.expr import Space, binary, const, expr
from tile_core.program import (
    Atomic,
    Bind,
    Break,
    Continue,
    Copy,
    Fill,
    For,
    If,
    Parallel,
    Print,
    Store,
    Sync,
    While,
)
from tile_core.span import Span

N = 64


def threads(params, body, tx, *more, count=(N,)):
    return kernel(params, body, threads=count, thread_vars=(tx, *more))


def local(name, shape, type="float32"):
    return tile(name, shape, type, Space.LOCAL)


def test_each_thread_stores(rng):
    a, b = tensor("A", (N,)), tensor("B", (N,))
    tx, x = var("tx"), var("x", "float32")
    body = [Bind(x, at(a, tx) * 2.0), Store(b, (tx,), x + 1.0)]
    p, q = rng.standard_normal(N).astype(np.float32), np.zeros(N, np.float32)
    threads([a, b], body, tx)(p, q)
    assert np.array_equal(q, p * 2 + 1)


def test_reversal_through_shared_memory(rng):
    a, b = tensor("A", (N,)), tensor("B", (N,))
    s, tx, x = tile("S", (N,)), var("tx"), var("x", "float32")
    body = [
        *allocs(s),
        Bind(x, at(a, tx)),
        Store(s, (tx,), x),
        Sync(),
        Store(b, (tx,), at(s, N - 1 - tx) + x * 100.0),
    ]
    p, q = rng.standard_normal(N).astype(np.float32), np.zeros(N, np.float32)
    threads([a, b], body, tx)(p, q)
    assert np.array_equal(q, p[::-1] + p * 100)


def test_tree_reduction_in_a_loop(rng):
    """A uniform loop around barriers, and a branch that differs between threads in it."""
    a, b = tensor("A", (N,)), tensor("B", (1,))
    s, tx, i = tile("S", (N,)), var("tx"), var("i")
    half = binary(">>", expr(N // 2), i)
    body = [
        *allocs(s),
        Store(s, (tx,), at(a, tx)),
        Sync(),
        For(
            i,
            expr(0),
            6,
            (
                If(tx < half, (Store(s, (tx,), at(s, tx) + at(s, tx + half)),)),
                Sync(),
            ),
        ),
        If(binary("==", tx, 0), (Store(b, (expr(0),), at(s, 0)),)),
    ]
    p, q = rng.integers(-9, 9, N).astype(np.float32), np.zeros(1, np.float32)
    threads([a, b], body, tx)(p, q)
    assert q[0] == p.sum()


def test_private_array_across_barriers(rng):
    a, b = tensor("A", (N, 4)), tensor("B", (N, 4))
    s, mine, tx, i, j, k = tile("S", (N,)), local("mine", (4,)), var("tx"), var("i"), var("j"), var("k")
    body = [
        *allocs(s, mine),
        For(i, expr(0), 4, (Store(mine, (i,), at(a, tx, i)),)),
        Store(s, (tx,), at(mine, 0)),
        Sync(),
        For(j, expr(0), 4, (Store(mine, (j,), at(mine, j) + at(s, (tx + 1) % N)),)),
        Sync(),
        For(k, expr(0), 4, (Store(b, (tx, k), at(mine, k)),)),
    ]
    p, q = rng.standard_normal((N, 4)).astype(np.float32), np.zeros((N, 4), np.float32)
    threads([a, b], body, tx)(p, q)
    assert np.array_equal(q, p + np.roll(p[:, 0], -1)[:, None])


def test_accumulator_over_a_loop_with_barriers(rng):
    a, b = tensor("A", (5, N)), tensor("B", (N,))
    s, total, tx, k = tile("S", (N,)), cell("total"), var("tx"), var("k")
    body = [
        *allocs(s, total),
        Store(total, (), const(0.0, "float32")),
        For(
            k,
            expr(0),
            5,
            (
                Copy(region(a, k, (0, N)), whole(s)),
                Sync(),
                Store(total, (), at(total) + at(s, N - 1 - tx)),
                Sync(),
            ),
        ),
        Store(b, (tx,), at(total)),
    ]
    p, q = rng.integers(-9, 9, (5, N)).astype(np.float32), np.zeros(N, np.float32)
    threads([a, b], body, tx)(p, q)
    assert np.array_equal(q, p.sum(0)[::-1])


def test_uniform_counter_in_a_while_loop(rng):
    """A private scalar that is the same in all threads may steer a loop around barriers."""
    s, out = tile("S", (N,), "int32"), tensor("out", (N,), "int32")
    n, tx = cell("n", "int32"), var("tx")
    body = [
        *allocs(s, n),
        Store(s, (tx,), tx),
        Store(n, (), expr(0)),
        Sync(),
        While(
            at(n) < 3,
            (
                Store(s, (tx,), at(s, tx) + 10),
                Sync(),
                Store(n, (), at(n) + 1),
            ),
        ),
        Store(out, (tx,), at(s, tx) + at(n)),
    ]
    y = np.zeros(N, np.int32)
    threads([out], body, tx)(y)
    assert np.array_equal(y, np.arange(N) + 33)


def test_break_of_a_loop_with_barriers():
    s, out = tile("S", (N,), "int32"), tensor("out", (N,), "int32")
    tx, i = var("tx"), var("i")
    body = [
        *allocs(s),
        Store(s, (tx,), expr(0)),
        For(
            i,
            expr(0),
            10,
            (
                If(i >= 4, (Break(),)),
                If(binary("==", i, 1), (Continue(),)),
                Sync(),
                Store(s, (tx,), at(s, tx) + i),
            ),
        ),
        Store(out, (tx,), at(s, tx)),
    ]
    y = np.zeros(N, np.int32)
    threads([out], body, tx)(y)
    assert (y == 5).all()


def test_break_that_differs_between_threads():
    """Without a barrier inside, each thread runs its own loop."""
    out = tensor("out", (N,), "int32")
    tx, i, n = var("tx"), var("i"), cell("n", "int32")
    body = [
        *allocs(n),
        Store(n, (), expr(0)),
        For(i, expr(0), 100, (If(i >= tx, (Break(),)), Store(n, (), at(n) + 1))),
        Store(out, (tx,), at(n)),
    ]
    y = np.zeros(N, np.int32)
    threads([out], body, tx)(y)
    assert np.array_equal(y, np.arange(N))


def test_two_thread_dimensions():
    out = tensor("out", (4, 8), "int32")
    tx, ty = var("tx"), var("ty")
    s = tile("S", (8, 4), "int32")
    body = [*allocs(s), Store(s, (tx, ty), ty * 100 + tx), Sync(), Store(out, (ty, tx), at(s, tx, ty))]
    y = np.zeros((4, 8), np.int32)
    threads([out], body, tx, ty, count=(8, 4))(y)
    j, i = np.indices(y.shape)
    assert np.array_equal(y, j * 100 + i)


def test_tile_ops_between_threads_code(rng):
    a, b = tensor("A", (N,)), tensor("B", (N,))
    s, f, tx, i = tile("S", (N,)), fragment("F", (N,)), var("tx"), var("i")
    body = [
        *allocs(s, f),
        Fill(whole(s), const(1.0, "float32")),
        Store(s, (tx,), at(s, tx) + at(a, tx)),
        Sync(),
        Copy(whole(s), whole(f)),
        Parallel((i,), (N,), (Store(f, (i,), at(f, i) * 2.0),)),
        Copy(whole(f), whole(b)),
    ]
    p, q = rng.standard_normal(N).astype(np.float32), np.zeros(N, np.float32)
    threads([a, b], body, tx)(p, q)
    assert np.array_equal(q, (p + 1) * 2)


def test_tile_op_of_each_thread(rng):
    """A copy or fill that names private memory or a thread number is done by each thread."""
    a, b = tensor("A", (N, 8)), tensor("B", (N, 8))
    mine, tx = local("mine", (8,)), var("tx")
    body = [
        *allocs(mine),
        Fill(whole(mine), const(0.0, "float32")),
        Copy(region(a, tx, (0, 8)), whole(mine)),
        Sync(),
        Copy(whole(mine), region(b, N - 1 - tx, (0, 8))),
    ]
    p, q = rng.standard_normal((N, 8)).astype(np.float32), np.zeros((N, 8), np.float32)
    threads([a, b], body, tx)(p, q)
    assert np.array_equal(q, p[::-1])


def test_ticket_used_after_a_barrier():
    count, out = tile("count", (1,), "int32"), tensor("out", (N,), "int32")
    tx, ticket = var("tx"), var("ticket")
    body = [
        *allocs(count),
        Fill(whole(count), expr(0)),
        Atomic("add", count, (expr(0),), expr(1), result=ticket),
        Sync(),
        Store(out, (tx,), at(count, 0) * 1000 + ticket),
    ]
    y = np.zeros(N, np.int32)
    threads([out], body, tx)(y)
    assert sorted(y - N * 1000) == list(range(N))


def test_print_of_each_thread(capsys):
    tx = var("tx")
    threads([tensor("A", (1,))], [Print("t", (tx,))], tx, count=(3,))(np.zeros(1, np.float32))
    assert capsys.readouterr().out.splitlines() == ["t 0", "t 1", "t 2"]


def test_divergent_barrier_is_refused():
    tx = var("tx")
    place = Span("kernel.py", 3, 1, 3, 9)
    body = [If(tx < 3, (Sync(span=Span("kernel.py", 4, 1, 4, 9)),), span=place)]
    with pytest.raises(Unsupported, match="part ways") as e:
        threads([tensor("A", (1,))], body, tx)
    assert e.value.span == place
