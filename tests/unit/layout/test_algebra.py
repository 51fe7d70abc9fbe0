from __future__ import annotations

from itertools import product as cartesian
from math import prod

import brute
from brute import held, orderly, places, places_boxed, points, wild
from hypothesis import assume, given
from hypothesis import strategies as st

import tile_backend_cuda.atoms as atoms
from tile_core.layout import algebra as alg
from tile_core.layout import panels
from tile_core.layout.layout import Axis, Iter, Layout, normal, same


@given(st.one_of(orderly(), wild()))
def test_permute(x: Layout) -> None:
    y = alg.permute(x, (1, 0))
    if y is not None:
        assert {(b, a): p for (a, b), p in places(x).items()} == places(y)


@given(wild(), st.data())
def test_reshape(x: Layout, data: st.DataObject) -> None:
    total = x.shape[0] * x.shape[1]
    a = data.draw(st.sampled_from([d for d in range(1, total + 1) if total % d == 0]))
    y = alg.reshape(x, (a, total // a))
    assert y is not None and list(places(y).values()) == list(places(x).values())


@given(orderly(), st.data())
def test_cut(x: Layout, data: st.DataObject) -> None:
    start = [data.draw(st.integers(0, n - 1)) for n in x.shape]
    shape = tuple(data.draw(st.integers(1, n - s)) for n, s in zip(x.shape, start))
    y = alg.cut(x, start, shape)
    if y is not None:
        whole = places(x)
        assert all(p == whole[tuple(c + s for c, s in zip(at, start))] for at, p in places(y).items())
    elif all(s == 0 for s in start):
        raise AssertionError("a prefix can always be cut")


@given(orderly(), orderly())
def test_product_and_quotient(outer: Layout, atom: Layout) -> None:
    if atom.padded:
        return
    assume(
        prod(i.extent for x in (outer, atom) for i in (*x.iters, *x.replicas)) <= 1 << 14
    )  # every place is listed
    x = alg.product(outer, atom)
    assert x is not None
    size = {a: atom.cosize(a) for a in Axis}
    small, big = places_boxed(atom), places_boxed(outer)
    for at, copies in places_boxed(x).items():
        q, a = tuple(c // n for c, n in zip(at, atom.shape)), tuple(c % n for c, n in zip(at, atom.shape))
        want = {tuple(o * size[axis] + i for axis, o, i in zip(Axis, p, r)) for p in big[q] for r in small[a]}
        assert set(copies) == want
    back = alg.quotient(x, atom)
    assert back is not None and same(back, outer)


@given(orderly(threads=False), st.data())
def test_compose(then: Layout, data: st.DataObject) -> None:
    size = then.box[0] * then.box[1]
    extents = data.draw(st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=3))
    iters = tuple(Iter(e, data.draw(st.sampled_from([0, 1, 2, 3, 4, 6, 8, 10])), Axis.INDEX) for e in extents)
    offset = data.draw(st.integers(0, 3))
    total = 1
    for e in extents:
        total *= e
    first = Layout((total,), iters, offset=((Axis.INDEX, offset),))
    if first.cosize(Axis.INDEX) > size:
        return
    y = alg.compose(then, first)
    table = dict(enumerate(places_boxed(then).values()))
    if y is not None:
        for at, copies in points(first).items():
            assert places(y)[at] == table[copies[0][Axis.INDEX]]
    elif (
        offset == 0 and len([e for e in extents if e > 1]) == 1 and iters[0].stride == 1 and len(extents) == 1
    ):
        groups = normal(Layout(then.box, then.iters)).iters
        assert extents[0] > groups[-1].extent  # a run inside the lowest digit always composes


@given(orderly())
def test_inverse_is_a_left_inverse(x: Layout) -> None:
    space = ((Axis.THREAD, x.cosize(Axis.THREAD)), (Axis.REGISTER, x.cosize(Axis.REGISTER)))
    back = alg.inverse(x, space)
    assert back is not None
    table = places(back)
    for k, copies in enumerate(points(x, True).values()):
        for at in copies:
            spot = table.get((at[Axis.THREAD], at[Axis.REGISTER]))
            assert spot is not None and spot[0][list(Axis).index(Axis.INDEX)] == k


def test_inverse_with_holes() -> None:
    padded = panels.row_major((64, 176), 184)
    back = alg.inverse(padded, ((Axis.MEMORY, 64 * 184),))
    assert back is not None
    for i, j in cartesian(range(64), range(176)):
        assert back.place((padded.place((i, j))[Axis.MEMORY],)).get(Axis.INDEX, 0) == i * 176 + j


@given(orderly(), st.sampled_from([(0,), (1,)]))
def test_project(x: Layout, keep: tuple[int]) -> None:
    y = alg.project(x, keep)
    assert y is not None
    threads: dict[tuple[int, ...], set[int]] = {}
    for at, copies in points(x, True).items():
        threads.setdefault((at[keep[0]],), set()).update(p[Axis.THREAD] for p in copies)
    for at, copies in points(y).items():
        assert {p[Axis.THREAD] for p in copies} == threads[at]
    assert brute.injective(y)


@given(orderly(), orderly(), st.booleans())
def test_contains(x: Layout, y: Layout, related: bool) -> None:
    if related:  # move some thread digits to registers: then it often holds
        y = Layout(x.shape, alg.packed(x.iters), x.replicas, box=x.box)
        x = Layout(x.shape, tuple(Iter(i.extent, 64 + 7 * k, Axis.REGISTER) if k == 0 else i for k, i in enumerate(x.iters)),
                   tuple(r for r in x.replicas), box=x.box)  # fmt: skip
    if x.shape != y.shape:
        return
    have, need = held(x), held(y)
    real = all(e <= have.get(t, set()) for t, e in need.items())
    assert not alg.contains(x, y) or real
    assert alg.contains(x, x) and alg.contains(y, y)


def test_contains_row_values_of_an_accumulator() -> None:
    c = atoms.wgmma_c(176)
    row = alg.project(c, [0])
    assert row is not None and alg.contains(row, row) and alg.equivalent(row, row)
    one_copy = Layout((64,), row.iters)
    assert alg.contains(row, one_copy) and not alg.contains(one_copy, row)


def test_access_of_ragged_tiles() -> None:
    f = Layout(
        (4, 229),
        (Iter(4, 2, Axis.REGISTER), Iter(2, 1, Axis.REGISTER), Iter(128, 1, Axis.THREAD)),
        box=(4, 256),
    )
    found = alg.access(f, panels.row_major((4, 229)), 128)
    assert found is not None
    for i, j in cartesian(range(4), range(229)):
        at = f.place((i, j))
        assert (
            found.place((at.get(Axis.THREAD, 0), at.get(Axis.REGISTER, 0))).get(Axis.MEMORY, 0) == i * 229 + j
        )


def test_invert_with_a_swizzle() -> None:
    s = panels.span_tile((16, 128), 128, 16)
    back = alg.invert(s, ((Axis.MEMORY, 2048),))
    assert back is not None
    for i, j in cartesian(range(16), range(128)):
        at = back.undo(s.place((i, j))[Axis.MEMORY])
        assert back.layout.place((at,)).get(Axis.INDEX, 0) == i * 128 + j
