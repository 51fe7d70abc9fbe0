"""Loops, branches, several launches, scalars, workspaces, pointers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cpu_programs import (
    allocs,
    at,
    build,
    cell,
    dim,
    fragment,
    kernel,
    launch,
    program,
    region,
    tensor,
    var,
    whole,
)

from tile_core.dtypes import dtype
from tile_core.errors import Unsupported
from tile_core.expr import Buffer, Space, Var, binary, ceildiv, const, expr
from tile_core.program import (
    Alloc,
    Assume,
    Break,
    Breakpoint,
    Continue,
    Copy,
    Fill,
    For,
    If,
    Parallel,
    Store,
    Sync,
    While,
)


def collect(*body, n=32):
    """Runs ``body``, which stores into an int32 tensor."""
    out = tensor("out", (n,), "int32")
    y = np.full(n, -1, np.int32)
    kernel([out], body_of(body, out))(y)
    return y


def body_of(body, out):
    return [s(out) if callable(s) else s for s in body]


@pytest.mark.parametrize("kind", ["serial", "unroll", "vectorized", "pipelined"])
@pytest.mark.parametrize(("start", "extent", "step"), [(0, 8, 1), (3, 5, 2), (20, 4, -5), (0, 0, 1)])
def test_for(kind, start, extent, step):
    i = var("i")
    got = collect(lambda out: For(i, expr(start), extent, (Store(out, (i,), i * 10),), kind=kind, step=step))
    wanted = np.full(32, -1)
    for k in range(start, start + extent * step, step):
        wanted[k] = k * 10
    assert np.array_equal(got, wanted)


def test_break_and_continue():
    i = var("i")
    got = collect(
        lambda out: For(
            i,
            expr(0),
            32,
            (
                If(i >= 10, (Break(),)),
                If(binary("==", i % 3, 0), (Continue(),)),
                Store(out, (i,), i),
            ),
        )
    )
    assert np.array_equal(got, [k if k < 10 and k % 3 else -1 for k in range(32)])


def test_while():
    n, k = cell("n", "int32"), cell("k", "int32")
    got = collect(
        *allocs(n, k),
        Store(n, (), expr(27)),
        Store(k, (), expr(0)),
        lambda out: While(
            at(n) > 1,
            (
                Store(out, (at(k),), at(n)),
                Store(k, (), at(k) + 1),
                If(at(k) >= 32, (Break(),)),
                If(binary("==", at(n) % 2, 0), (Store(n, (), at(n) // 2),), (Store(n, (), at(n) * 3 + 1),)),
            ),
        ),
    )
    x, wanted = 27, []
    while len(wanted) < 32:
        wanted.append(x)
        x = x // 2 if x % 2 == 0 else 3 * x + 1
    assert np.array_equal(got, wanted)


def test_loop_bound_read_once():
    n, i = cell("n", "int32"), var("i")
    got = collect(
        *allocs(n),
        Store(n, (), expr(4)),
        lambda out: For(
            i,
            expr(0),
            at(n),
            (
                Store(n, (), expr(0)),
                Store(out, (i,), i),
            ),
        ),
    )
    assert np.array_equal(got[:5], [0, 1, 2, 3, -1])


def test_if_else_on_data(rng):
    a, out = tensor("A", (64,)), tensor("out", (64,))
    i = var("i")
    body = [
        Parallel(
            (i,),
            (64,),
            (If(at(a, i) > 0, (Store(out, (i,), at(a, i)),), (Store(out, (i,), const(0.0, "float32")),)),),
        )
    ]
    x, y = rng.standard_normal(64).astype(np.float32), np.ones(64, np.float32)
    kernel([a, out], body)(x, y)
    assert np.array_equal(y, np.maximum(x, 0))


def test_sync_and_assume_do_nothing():
    i = var("i")
    got = collect(
        Sync(), Assume(expr(1) < expr(2)), lambda out: For(i, expr(0), 2, (Sync(), Store(out, (i,), i)))
    )
    assert list(got[:3]) == [0, 1, -1]


def test_block_numbers():
    out = tensor("out", (3, 4, 5), "int32")
    x, y, z = var("bx"), var("by"), var("bz")
    run = kernel([out], [Store(out, (z, y, x), x + y * 10 + z * 100)], vars=(x, y, z), grid=(5, 4, 3))
    got = np.zeros((3, 4, 5), np.int32)
    run(got)
    k, j, i = np.indices(got.shape)
    assert np.array_equal(got, i + j * 10 + k * 100)


def test_empty_grid():
    m = dim("m")
    out = tensor("out", (m,))
    bx = var("bx")
    run = kernel([out], [Store(out, (bx,), const(1.0, "float32"))], vars=(bx,), grid=(m,))
    run(np.zeros(1, np.float32), m=0)


def test_scalars():
    out = tensor("out", (6,), "float64")
    types = ("int32", "int64", "float32", "float64", "bool", "float16")
    given = [Var(f"s{k}", dtype(t), 0) for k, t in enumerate(types)]
    body = [Store(out, (expr(k),), s.astype("float64")) for k, s in enumerate(given)]
    y = np.zeros(6)
    kernel([*given, out], body)(-7, 2**40, 0.1, 0.1, True, 0.1, y)
    assert list(y) == [-7, 2**40, float(np.float32(0.1)), 0.1, 1, float(np.float16(0.1))]


def test_launches_run_in_order_with_a_workspace(rng):
    n = dim("n")
    a, b = tensor("A", (n,)), tensor("B", (n,))
    hold = Buffer("hold", (n,), dtype("float32"), Space.GLOBAL, number=99)
    bx, by, f, g = var("bx"), var("by"), fragment("F", (64,)), fragment("G", (64,))
    i = var("i")
    double = [
        *allocs(f),
        Copy(region(a, (bx * 64, 64)), whole(f)),
        Parallel((i,), (64,), (Store(f, (i,), at(f, i) * 2.0),)),
        Copy(whole(f), region(hold, (bx * 64, 64))),
    ]
    back = [*allocs(g), Copy(region(hold, (by * 64, 64)), whole(g)), Copy(whole(g), region(b, (by * 64, 64)))]
    grid = (ceildiv(n, 64),)
    run = build(program([a, b], Alloc(hold), launch(double, (bx,), grid), launch(back, (by,), grid)))
    x = rng.standard_normal(1000).astype(np.float32)
    y = np.zeros_like(x)
    run(x, y, n=1000)
    assert np.array_equal(y, x * 2)


def test_tensor_over_a_pointer(rng):
    p = Var("p", dtype("handle"), 0)
    over = Buffer("over", (8,), dtype("float32"), Space.GLOBAL, base=p, number=5)
    out = tensor("out", (8,))
    x, y = rng.standard_normal(8).astype(np.float32), np.zeros(8, np.float32)
    kernel([p, out], [Copy(whole(over), whole(out))])(x, y)
    assert np.array_equal(x, y)


def test_index_from_data(rng):
    """Gather and histogram: indices that nothing is known about are guarded."""
    table, index, out = tensor("T", (16,)), tensor("I", (40,), "int32"), tensor("O", (40,))
    i = var("i")
    body = [Parallel((i,), (40,), (Store(out, (i,), at(table, at(index, i))),))]
    t, y = rng.standard_normal(16).astype(np.float32), np.ones(40, np.float32)
    k = rng.integers(-5, 25, 40).astype(np.int32)
    kernel([table, index, out], body)(t, k, y)
    assert np.array_equal(y, np.where((k >= 0) & (k < 16), t[np.clip(k, 0, 15)], 0))


def test_wrapping_index_arithmetic():
    """An index made from 32-bit data wraps as 32-bit arithmetic does."""
    seed, out = tensor("S", (8,), "int32"), tensor("O", (8,), "int32")
    i = var("i")
    h = at(seed, i) * 1103515245 + 12345
    body = [Parallel((i,), (8,), (Store(out, (h % 8,), i),))]
    s = np.arange(100, 108, dtype=np.int32)
    y = np.full(8, -1, np.int32)
    kernel([seed, out], body)(s, y)
    with np.errstate(over="ignore"):
        where = (s * np.int32(1103515245) + np.int32(12345)) % 8
    wanted = np.full(8, -1)
    for k in range(8):
        wanted[where[k]] = k
    assert np.array_equal(y, wanted)


def test_large_offsets():
    """Offsets beyond 2**31 elements are computed in 64 bits."""
    n = 3 << 30
    a = tensor("A", (n // 1024, 1024), "int8")
    row = var("row")
    body = [Store(a, (row + (n // 1024 - 8), expr(1023)), const(7, "int8"))]
    x = np.zeros((n // 1024, 1024), np.int8)
    kernel([a], body, vars=(row,), grid=(8,))(x)
    assert (x[-8:, -1] == 7).all()


def test_shared_memory_beyond_the_stack(rng):
    big = fragment("big", (512, 512))
    a = tensor("A", (512, 512))
    body = [*allocs(big), Fill(whole(big), const(2.0, "float32")), Copy(whole(big), whole(a))]
    y = np.zeros((512, 512), np.float32)
    kernel([a], body)(y)
    assert (y == 2).all()


def test_breakpoint_is_refused():
    with pytest.raises(Unsupported, match="interpreter"):
        kernel([tensor("A", (1,))], [Breakpoint()])


def test_symbolic_tile_is_refused():
    m = dim("m")
    a = tensor("A", (m,))
    f = replace(fragment("F", (1,)), shape=(m,))
    with pytest.raises(Unsupported, match="only known at launch"):
        kernel([a], [*allocs(f), Copy(whole(a), whole(f))])


def test_private_scalar_begins_each_iteration_anew(rng):
    a, out = tensor("A", (50,)), tensor("out", (50,))
    total, i = cell("total"), var("i")
    body = [
        *allocs(total),
        Store(total, (), const(100.0, "float32")),
        Parallel((i,), (50,), (Store(total, (), at(total) + at(a, i)), Store(out, (i,), at(total)))),
    ]
    x, y = rng.standard_normal(50).astype(np.float32), np.zeros(50, np.float32)
    kernel([a, out], body)(x, y)
    assert np.array_equal(y, np.float32(100) + x)


def test_assumption_removes_guards():
    n = dim("n")
    a, f, bx = tensor("A", (n,)), fragment("F", (64,)), var("bx")
    steps = [Copy(whole(f), region(a, (bx * 64, 64)))]
    texts = []
    for facts in ([], [Assume(bx * 64 + 64 <= n)]):
        body = [*allocs(f), Fill(whole(f), const(1.0, "float32")), *facts, *steps]
        run = kernel([a], body, vars=(bx,), grid=(ceildiv(n, 64),))
        y = np.zeros(128, np.float32)
        run(y, n=128)
        assert (y == 1).all()
        texts.append(run.source.text)
    assert len(texts[1]) < len(texts[0])
