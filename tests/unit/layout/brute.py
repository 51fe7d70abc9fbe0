"""The oracle: what a layout means, by the plainest possible enumeration. Shares no code with the package."""

from __future__ import annotations

from itertools import product
from math import prod

from hypothesis import strategies as st

from tile_core.layout.f2 import BitMap
from tile_core.layout.layout import Axis, Iter, Layout

Point = tuple[int, int, int]  # thread, register, memory


def apply_bits(m: BitMap, x: int) -> int:
    n = len(m.columns)
    low, out = x % (1 << n), m.constant
    for j in range(n):
        if (low >> j) % 2:
            out ^= m.columns[j]
    return x - low + out


def points(layout: Layout, boxed: bool = False) -> dict[tuple[int, ...], list[dict[Axis, int]]]:
    """Every logical coordinate -> the places of all its copies."""
    out: dict[tuple[int, ...], list[dict[Axis, int]]] = {}
    for coords in product(*(range(n) for n in (layout.box if boxed else layout.shape))):
        x = sum(c * prod(layout.box[d + 1 :]) for d, c in enumerate(coords))
        digits = []
        for k, it in enumerate(layout.iters):
            digits.append(x // prod(i.extent for i in layout.iters[k + 1 :]) % it.extent)
        copies = []
        for values in product(*(range(r.extent) for r in layout.replicas)):
            at = dict.fromkeys(Axis, 0) | dict(layout.offset)
            for it, d in [*zip(layout.iters, digits), *zip(layout.replicas, values)]:
                at[it.axis] += d * it.stride
            at[Axis.NONE] = 0
            at[Axis.MEMORY] = apply_bits(layout.swizzle, at[Axis.MEMORY])
            copies.append(at)
        out[coords] = copies
    return out


def places(layout: Layout) -> dict[tuple[int, ...], list[tuple[int, ...]]]:
    return {c: [tuple(at[a] for a in Axis) for at in copies] for c, copies in points(layout).items()}


def held(layout: Layout) -> dict[int, set[tuple[int, ...]]]:
    """thread -> elements it holds"""
    out: dict[int, set[tuple[int, ...]]] = {}
    for coords, copies in points(layout).items():
        for at in copies:
            out.setdefault(at[Axis.THREAD], set()).add(coords)
    return out


def injective(layout: Layout) -> bool:
    every = [p for ps in places_boxed(layout).values() for p in ps]
    return len(every) == len(set(every))


def places_boxed(layout: Layout) -> dict[tuple[int, ...], list[tuple[int, ...]]]:
    return {c: [tuple(at[a] for a in Axis) for at in copies] for c, copies in points(layout, True).items()}


# strategies

AXES = (Axis.THREAD, Axis.REGISTER, Axis.MEMORY)


@st.composite
def wild(draw: st.DrawFn, axes: tuple[Axis, ...] = AXES, replicas: bool = True) -> Layout:
    """Any layout at all: any extents and strides."""
    extents = draw(st.lists(st.sampled_from([1, 2, 2, 3, 4, 5, 6, 8]), min_size=1, max_size=4))
    iters = tuple(Iter(e, draw(st.integers(0, 12)), draw(st.sampled_from(axes))) for e in extents)
    copies = draw(
        st.lists(st.builds(Iter, st.integers(1, 3), st.integers(1, 12), st.sampled_from(axes)), max_size=1)
    )
    total = prod(extents)
    split = draw(st.sampled_from([d for d in range(1, total + 1) if total % d == 0]))
    return Layout((split, total // split), iters, tuple(copies) if replicas else ())


@st.composite
def orderly(draw: st.DrawFn, threads: bool = True, rank: int = 2) -> Layout:
    """An injective fragment with groupable dimensions: digits dealt to threads and registers without gaps."""
    dims = [draw(st.lists(st.sampled_from([2, 2, 3, 4, 5]), min_size=0, max_size=3)) for _ in range(rank)]
    flat = [(d, k) for d, g in enumerate(dims) for k in range(len(g))]
    where = {
        f: draw(st.sampled_from([Axis.THREAD, Axis.REGISTER] if threads else [Axis.MEMORY])) for f in flat
    }
    order = draw(st.permutations(flat))
    size = dict.fromkeys(Axis, 1)
    at: dict[tuple[int, int], Iter] = {}
    copies: list[Iter] = []
    for f in order:
        axis, extent = where[f], dims[f[0]][f[1]]
        at[f] = Iter(extent, size[axis], axis)
        size[axis] *= extent
        if threads and draw(st.integers(0, 5)) == 0:
            copies.append(Iter(2, size[Axis.THREAD], Axis.THREAD))
            size[Axis.THREAD] *= 2
    box = tuple(prod(g) for g in dims)
    shape = tuple(b if draw(st.integers(0, 2)) else draw(st.integers(max(1, b - 1), b)) for b in box)
    return Layout(shape, tuple(at[f] for f in flat), tuple(copies), box=box)
