"""Plans are checked by enumeration: each thread must hold what its iterations read, and reach all copies it writes."""

from __future__ import annotations

import time
from itertools import product

import cases
import numpy as np
import pytest
from cases import F, G, copy, read, write
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from targets import AMPERE, HOPPER

from tile_core.hardware import TargetInfo
from tile_core.inference.engine import solve
from tile_core.inference.maps import loops
from tile_core.inference.model import Access, Elementwise, Multiply, Problem, Reduction, Solution, Tile
from tile_core.layout.convert import Kind
from tile_core.layout.layout import Axis, Layout, injective, same

Table = NDArray[np.int64]


def threads_of(layout: Layout) -> Table:
    """(elements of the shape, copies) -> thread"""
    inside = tuple(slice(0, n) for n in layout.shape)
    first = layout.table(Axis.THREAD)[inside].ravel()
    shifts = [
        sum(d * r.stride for d, r in zip(ds, layout.replicas))
        for ds in product(*(range(r.extent) for r in layout.replicas))
    ]
    return first[:, None] + np.array(shifts)[None, :]


def touched(access: Access, loop: Elementwise, rows: Table) -> Table:
    """Linear element number of each iteration in ``rows`` (iterations, loops)."""
    out = np.zeros(len(rows), dtype=np.int64)
    for i, extent in zip(access.index, access.tile.shape):
        at = np.full(len(rows), i.constant, dtype=np.int64)
        for d in i.digits:
            at += rows[:, d.loop] // d.low % d.extent * d.stride
        assert ((at >= 0) & (at < extent)).all()
        out = out * extent + at
    return out


def check(plan: Solution) -> None:
    moved = {(m.op, m.tile.name) for m in plan.changes}
    for name, layout in plan.fragments.items():
        assert injective(layout), name
        assert layout.cosize(Axis.THREAD) <= plan.problem.threads, name
    for op in plan.problem.ops:
        if isinstance(op, Elementwise):
            check_loop(plan, op, moved)
        elif isinstance(op, Reduction) and (op.name, op.result.name) not in moved and op.result.space is F:
            source, result = (
                threads_of(plan.fragments[op.source.name]),
                threads_of(plan.fragments[op.result.name]),
            )
            whole = np.arange(source.shape[0]).reshape(op.source.shape)
            lines = np.moveaxis(whole, op.dim, -1).reshape(result.shape[0], -1)
            for line, holders in zip(lines, result):
                assert (
                    set(holders.tolist()) == set(source[line].ravel().tolist())
                    or plan.fragments[op.source.name].padded
                )
        elif isinstance(op, Multiply):
            choice = plan.gemms[op.name]
            if (op.name, op.c.name) not in moved:
                assert same(plan.fragments[op.c.name], choice.c)
            if op.a.space is F and (op.name, op.a.name) not in moved and not op.a_transposed:
                assert same(plan.fragments[op.a.name], choice.a)


def check_loop(plan: Solution, op: Elementwise, moved: set[tuple[str, str]]) -> None:
    loop = plan.loops[op.name]
    rows = np.stack(np.unravel_index(np.arange(int(np.prod(op.extents))), op.extents), axis=1)
    run = threads_of(loop)
    window = np.ones(len(rows), dtype=bool)
    for k, (start, count) in plan.windows.get(op.name, {}).items():
        window &= (start <= rows[:, k]) & (rows[:, k] < start + count)
    rows, run = rows[window], run[window]
    for access in op.accesses:
        name = access.tile.name
        if access.tile.space is not F or (op.name, name) in moved:
            continue
        assert not access.opaque
        home = threads_of(plan.fragments[name])[touched(access, op, rows)]
        assert (run[:, :, None] == home[:, None, :]).any(axis=2).all(), (
            f"{op.name} reads {name} where it is not"
        )
        if access.write:
            assert (home[:, :, None] == run[:, None, :]).any(axis=2).all(), (
                f"{op.name} leaves stale copies of {name}"
            )


@pytest.mark.parametrize("number", range(len(cases.CASES)))
def test_case(number: int) -> None:
    build, target = cases.CASES[number]
    kernel = build()
    plan = solve(kernel, target)
    check(plan)
    assert all(c.conflicts == 0 for c in plan.shared.values()), plan.shared
    again = solve(build(), target)
    assert again.fragments == plan.fragments and again.cost == plan.cost  # nothing depends on history
    start = time.process_time()
    solve(kernel, target)
    assert time.process_time() - start < 0.5


def moves(kernel: Problem, target: TargetInfo) -> list[tuple[str, str, Kind]]:
    return [(m.op, m.tile.name, m.conversion.kind) for m in solve(kernel, target).changes]


@pytest.mark.parametrize("n", [64, 96, 128, 176])
def test_attention_keeps_p_in_registers(n: int) -> None:
    plan = solve(cases.attention(n=n), HOPPER)
    assert not plan.changes and same(plan.fragments["S"], plan.fragments["P"])
    assert plan.gemms["QK"].warps == plan.gemms["PV"].warps == (2, 1)
    assert plan.fragments["top"].replicas  # four lanes of a quad hold each row's maximum


def test_mla_exchanges_p_through_shared() -> None:
    assert moves(cases.mla(), HOPPER) == [("cast", "P", Kind.SHARED)]
    (change,) = solve(cases.mla(), HOPPER).changes
    assert (change.tile.name, change.op, change.before) == ("P", "cast", "PV")
    assert change.conversion.reason.startswith("dimension 1, place 32")


def test_nothing_else_moves() -> None:
    for build, target in cases.CASES:
        kernel = build()
        expected = {"mla": 1, "fragment rotation": 1}.get(kernel.name, 0)
        expected += (
            kernel.name.startswith("gemm RR") and target is HOPPER
        )  # wgmma reads b from shared memory only
        assert len(solve(kernel, target).changes) == expected, kernel.name


def test_slices_become_windows() -> None:
    plan = solve(cases.sliced(), AMPERE)
    assert plan.windows == {"fill": {0: (3, 8)}} and not plan.changes


SIZES = [1, 2, 3, 4, 6, 8, 12, 16, 24, 33, 48]


@st.composite
def kernels(draw: st.DrawFn) -> Problem:
    m, n = draw(st.sampled_from(SIZES)), draw(st.sampled_from(SIZES))
    x, y, row, column = (
        Tile("x", (m, n), 32, F),
        Tile("y", (m, n), 16, F),
        Tile("row", (m,), 32, F),
        Tile("col", (n,), 32, F),
    )
    gx, gc = Tile("X", (m, n), 16, G), Tile("C", (n,), 32, G)
    i, j = loops(m, n)
    ops: list[Elementwise | Reduction] = [copy("load", gx, x), copy("column", gc, column)]
    for k in range(draw(st.integers(1, 4))):
        kind = draw(st.integers(0, 6))
        name = f"op{k}"
        if kind == 0:
            ops.append(Reduction(name, x, row, 1))
        elif kind == 1:
            ops.append(
                Elementwise(name, (m, n), (read(x, i, j), read(row, i), read(column, j), write(y, i, j)))
            )
        elif kind == 2:
            ops.append(
                Elementwise(
                    name, (m, n), (read(column, j % draw(st.sampled_from([1, 2, 3, n]))), write(y, i, j))
                )
            )
        elif kind == 3:
            ops.append(
                Elementwise(name, (m, n), (read(row, i // draw(st.sampled_from([1, 2, 3]))), write(x, i, j)))
            )
        elif kind == 4:
            count, start = draw(st.integers(1, m)), 0
            start = draw(st.integers(0, m - count))
            a, b = loops(count, n)
            ops.append(Elementwise(name, (count, n), (read(column, b), write(x, a + start, b))))
        elif kind == 5 and m == n:
            ops.append(Elementwise(name, (m, n), (read(x, j, i), write(y, i, j))))
        else:
            ops.append(
                Elementwise(
                    name,
                    (n,),
                    (read(column, (loops(n)[0] + draw(st.integers(0, 2))) % n), write(column, loops(n)[0])),
                )
            )
    return Problem("random", draw(st.sampled_from([32, 48, 64, 96, 128])), tuple(ops))


@settings(max_examples=200)
@given(kernels())
def test_random_kernels_are_sound_and_never_fail(kernel: Problem) -> None:
    check(solve(kernel, AMPERE))
