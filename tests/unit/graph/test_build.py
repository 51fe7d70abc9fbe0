"""Dependences of hand-made programs: which there are, which there are not, and which are carried by a loop."""

from __future__ import annotations

import time
from itertools import product

import handmade as h
import pytest

from tile_core.dtypes import BOOL, INT32
from tile_core.expr import Buffer, Space, Var, const, expr
from tile_core.graph import Graph, build
from tile_core.graph.boxes import Turn, element_box, meet, region_box
from tile_core.program import Bind, Copy, If, Quantify, While


def edges(g: Graph, *, buffer: str = "") -> set[str]:
    return {
        f"{e.source}>{e.target} {e.kind}{' carried' if e.carried else ''}"
        for e in g.edges
        if buffer in ("", e.buffer.name)
    }


def test_gemm() -> None:
    g = build(h.gemm())
    assert [n.name for n in g.nodes] == ["fill0", "copy0", "copy1", "gemm0", "copy2"]
    assert [(r.name, r.parent) for r in g.loops] == [("launch0", ""), ("for0", "launch0")]
    assert edges(g, buffer="As") == {"copy0>gemm0 raw", "copy0>copy0 waw carried", "gemm0>copy0 war carried"}
    assert edges(g, buffer="acc") == {
        "fill0>gemm0 raw",
        "fill0>gemm0 waw",
        "gemm0>gemm0 raw carried",
        "gemm0>gemm0 waw carried",
        "gemm0>copy2 raw",
    }
    assert not edges(g, buffer="C") and not edges(g, buffer="A")


def test_names_find_the_node_of_a_statement() -> None:
    p = h.gemm()
    g = build(p)
    loop = p.launches[0].body[4]
    assert g.names[id(loop.body[2])] == "gemm0"


def test_disjoint_constant_regions_do_not_conflict() -> None:
    b = h.Builder("halves")
    b.blocks(1)
    x, t = b.tensor("X", 64, 64), b.shared("t", 64, 64)
    b.copy(h.part(x, slice(0, 32), slice(None)), h.part(t, slice(0, 32), slice(None)))
    b.copy(h.part(x, slice(32, 64), slice(None)), h.part(t, slice(32, 64), slice(None)))
    b.fill(h.part(t, slice(32, 40), slice(0, 8)), 0)
    g = build(b.program())
    assert edges(g) == {"copy1>fill0 waw"}


def test_neighbouring_blocks_of_a_loop_do_not_conflict() -> None:
    b = h.Builder("rows")
    b.blocks(1)
    x, y = b.tensor("X", 64, 64), b.tensor("Y", 64, 64)
    b.loop(
        8,
        lambda i: b.copy(h.part(x, i * 8, 0, size=(8, 64)), h.part(y, i * 8, 0, size=(8, 64))),
        kind="serial",
    )
    b.loop(
        7,
        lambda i: b.copy(h.part(x, i * 8, 0, size=(9, 64)), h.part(y, i * 8, 0, size=(9, 64))),
        kind="serial",
    )
    g = build(b.program())
    assert edges(g) == {"copy0>copy1 waw", "copy1>copy1 waw carried"}


def test_a_covering_write_hides_older_ones() -> None:
    b = h.Builder("cover")
    b.blocks(1)
    x, t, y = b.tensor("X", 64), b.tile("t", 64), b.tensor("Y", 64)
    b.fill(t, 0)
    b.parallel((64,), lambda i: h.store(t, (i,), h.at(x, i)))
    b.copy(t, y)
    assert edges(build(b.program())) == {"fill0>parallel0 waw", "parallel0>copy0 raw"}


def test_a_branch_may_not_run() -> None:
    b = h.Builder("branch")
    (bx,) = b.blocks(4)
    x, t, y = b.tensor("X", 64), b.tile("t", 64), b.tensor("Y", 64)
    b.fill(t, 0)
    then, other = Copy(h.region(x), h.region(t)), Copy(h.region(t), h.region(y))
    b.body.append(If(bx > 1, (then,), (other,)))
    b.copy(t, y)
    g = build(b.program())
    assert {n.name: n.loop for n in g.nodes} == {
        "fill0": "launch0",
        "copy0": "if0",
        "copy1": "else0",
        "copy2": "launch0",
    }
    assert edges(g, buffer="t") == {
        "fill0>copy0 waw",
        "fill0>copy1 raw",
        "copy0>copy2 raw",
        "fill0>copy2 raw",
    }
    assert edges(g, buffer="Y") == {"copy1>copy2 waw"}


def test_an_index_that_memory_holds_may_be_anywhere() -> None:
    b = h.Builder("gather")
    b.blocks(1)
    x, table, t = b.tensor("X", 64, 64), b.tensor("table", 8, type="int32"), b.tile("t", 8, 64)
    row = b.var("row")
    b.body.append(Bind(row, h.at(table, 3)))
    b.copy(h.part(x, row, 0, size=(8, 64)), t)
    b.fill(h.part(t, h.at(table, 1), slice(0, 8)), 0)
    b.fill(h.part(t, slice(2, 3), slice(0, 8)), 0)
    g = build(b.program())
    assert edges(g) == {"elements0>copy0 raw", "copy0>fill0 waw", "copy0>fill1 waw", "fill0>fill1 waw"}
    assert [n.kind for n in g.nodes] == ["elements", "copy", "fill", "fill"]


def test_conditions_that_read_memory_are_nodes() -> None:
    b = h.Builder("until")
    b.blocks(1)
    x, t = b.tensor("X", 64), b.tile("t", 64)
    flag = Buffer("flag", (), INT32, Space.VAR, number=99)
    b.body.append(h.store(flag, (), 1))
    b.copy(x, t)
    found = Var("found", BOOL, 98)
    step = (Quantify("any", h.region(t), found), h.store(flag, (), expr(found).astype("int32")))
    b.body.append(While(h.at(flag) > 0, step))
    g = build(b.program())
    assert [n.name for n in g.nodes] == ["elements0", "copy0", "test0", "quantify0", "elements1"]
    assert {"elements0>test0 raw", "quantify0>elements1 raw", "copy0>quantify0 raw"} <= edges(g)


def test_open_programs_have_a_graph() -> None:
    g = build(h.running_maximum())
    assert [n.name for n in g.nodes] == ["copy0", "parallel0", "copy1"] and not g.loops
    assert edges(g, buffer="t") == {"copy0>parallel0 raw", "copy0>parallel0 waw", "parallel0>copy1 raw"}


def test_atomics_depend_on_each_other() -> None:
    g = build(h.histogram())
    (node,) = g.nodes
    assert [b.name for b in node.reads] == ["X", "out"] and [b.name for b in node.writes] == ["out"]


def test_views_meet_their_storage() -> None:
    b = h.Builder("view")
    b.blocks(1)
    x, t = b.tensor("X", 64), b.shared("t", 64)
    v = Buffer("v", (8, 8), t.dtype, Space.SHARED, number=77, source=t)
    b.copy(x, t)
    b.fill(h.part(v, slice(0, 2), slice(None)), 0)
    b.fill(h.part(v, slice(2, 4), slice(None)), 0)
    b.copy(t, x)
    found = edges(build(b.program()), buffer="t")
    assert found == {
        "copy0>fill0 waw",
        "copy0>fill1 waw",
        "copy0>copy1 raw",
        "fill0>copy1 raw",
        "fill1>copy1 raw",
    }


@pytest.mark.parametrize(
    ("factor", "extent_a", "extent_b", "shift"),
    list(product((-2, 0, 1, 3), (1, 2, 4), (1, 3), (-2, 0, 1, 5))),
)
def test_carried_meetings_by_enumeration(factor: int, extent_a: int, extent_b: int, shift: int) -> None:
    i = Var("i", INT32, 1)
    x = Buffer("x", (1000,), INT32, Space.SHARED)
    a = region_box(h.part(x, i * factor + 500, size=(extent_a,)))
    b = region_box(h.part(x, i * factor + (500 + shift), size=(extent_b,)))

    def cells(start: int, extent: int) -> set[int]:
        return set(range(start, start + extent))

    later = any(
        cells(factor * u, extent_a) & cells(factor * v + shift, extent_b)
        for u in range(9)
        for v in range(u + 1, 9)
    )
    same = bool(cells(0, extent_a) & cells(shift, extent_b))
    assert meet(a, b, Turn(i, 1, frozenset())) == later
    assert meet(a, b) == same


def test_boxes_of_elements() -> None:
    i, j, k = (Var(n, INT32, 10 + c) for c, n in enumerate("ijk"))
    x = Buffer("x", (64, 64), INT32, Space.SHARED)
    loops = {i: 8, j: 64}
    box = element_box(x, (expr(i) + k, expr(j)), loops, True)
    assert box.exact and [r.extent for r in box.ranges] == [8, 64]
    assert not element_box(x, (expr(i), expr(i)), loops, True).exact
    assert not element_box(x, (i * 2, expr(j)), loops, True).exact
    assert element_box(x, ((i + 1) % 8, expr(j)), loops, True).ranges[0].low is None
    assert element_box(x, (const(0), j // 2), loops, True).ranges[1].extent is None


def test_time() -> None:
    p = h.attention()
    best = 1.0
    for _ in range(20):
        start = time.process_time()
        build(p)
        best = min(best, time.process_time() - start)
    assert best < 0.005  # 0.7 ms on an idle core
