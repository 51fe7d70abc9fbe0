from __future__ import annotations

import brute
import pytest
from brute import orderly, places, places_boxed, points, wild
from hypothesis import given
from hypothesis import strategies as st

from tile_core.layout import layout as lib
from tile_core.layout.f2 import xor_swizzle
from tile_core.layout.layout import Axis, Iter, Layout


@given(wild())
def test_place_and_table(x: Layout) -> None:
    tables = {a: x.table(a) for a in (Axis.THREAD, Axis.REGISTER, Axis.MEMORY)}
    for coords, copies in points(x).items():
        got = [{a: at.get(a, 0) for a in tables} for at in x.copies(coords)]
        assert sorted(got, key=str) == sorted(({a: at[a] for a in tables} for at in copies), key=str)
        assert {a: int(t[coords]) for a, t in tables.items()} == {a: copies[0][a] for a in tables}


@given(st.one_of(wild(), orderly()))
def test_normal_form_is_the_same_function(x: Layout) -> None:
    n = lib.normal(x)
    assert {c: set(p) for c, p in places(n).items()} == {c: set(p) for c, p in places(x).items()}
    assert lib.normal(n) == n


@given(wild(replicas=False), wild(replicas=False))
def test_equal_normal_forms_iff_equal_functions(x: Layout, y: Layout) -> None:
    if x.shape == y.shape:
        assert lib.same(x, y) == (places(x) == places(y))


@given(wild(replicas=False), st.data())
def test_same_function_written_differently(x: Layout, data: st.DataObject) -> None:
    split: list[Iter] = []
    for it in x.iters:
        d = data.draw(st.sampled_from([d for d in range(1, it.extent + 1) if it.extent % d == 0]))
        split += [Iter(it.extent // d, it.stride * d, it.axis), Iter(d, it.stride, it.axis)]
    assert lib.same(x, Layout(x.shape, tuple(split)))


@given(st.one_of(wild(), orderly()))
def test_injective_is_exact(x: Layout) -> None:
    assert lib.injective(x) == brute.injective(x)


@given(st.one_of(wild(), orderly(), orderly(threads=False)))
def test_surjective_and_bijective(x: Layout) -> None:
    sizes = {
        a: 1 + max(at[a] for ps in points(x).values() for at in ps)
        for a in (Axis.THREAD, Axis.REGISTER, Axis.MEMORY)
    }
    image = {tuple(at[a] for a in sizes) for ps in points(x).values() for at in ps}
    full = 1
    for n in sizes.values():
        full *= n
    assert lib.surjective(x, sizes) <= (len(image) == full)  # never claims too much
    if lib.injective(x) and not x.padded:
        assert lib.surjective(x, sizes) == (len(image) == full)
        assert lib.bijective(x, sizes) == (len(image) == full)


def test_swizzle_keeps_injectivity_and_needs_whole_windows() -> None:
    x = Layout((8, 64), (Iter(8, 64, Axis.MEMORY), Iter(64, 1, Axis.MEMORY)), swizzle=xor_swizzle(3, 3, 3))
    assert lib.bijective(x, {Axis.MEMORY: 512}) and brute.injective(x)
    small = Layout(
        (5, 64), (Iter(5, 64, Axis.MEMORY), Iter(64, 1, Axis.MEMORY)), swizzle=xor_swizzle(3, 3, 3)
    )
    assert (
        small.footprint() == 512 and max(at[Axis.MEMORY] for ps in points(small).values() for at in ps) < 512
    )


@given(st.one_of(wild(), orderly()))
def test_grouping(x: Layout) -> None:
    groups = lib.grouped(x)
    if groups is not None:
        again = Layout(
            x.shape, lib.ungrouped(groups) or (Iter(1, 0, Axis.NONE),), x.replicas, x.offset, box=x.box
        )
        assert places_boxed(again) == places_boxed(x)


def test_bad_layouts_are_refused() -> None:
    with pytest.raises(ValueError, match="cover"):
        Layout((3,), (Iter(2, 1, Axis.THREAD),))
    with pytest.raises(ValueError, match="hold"):
        Layout((3,), (Iter(2, 1, Axis.THREAD),), box=(2,))


@pytest.mark.parametrize(
    "iters",
    [
        ((3, 2), (2, 3)),
        ((4, 2), (2, 3)),
        ((4, 3), (4, 2)),
        ((3, 4), (2, 6), (2, 1)),
        ((5, 6), (5, 10), (5, 15)),
    ],
)
def test_distinct_sums_off_the_mixed_radix(iters: tuple[tuple[int, int], ...]) -> None:
    x = Layout(tuple(e for e, _ in iters), tuple(Iter(e, s, Axis.MEMORY) for e, s in iters))
    assert lib.injective(x) == brute.injective(x)
