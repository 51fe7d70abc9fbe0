"""Copies from global to shared memory by the threads themselves, asynchronously: a copy of a tile in, its pieces out."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from ...dtypes import INT32
from ...expr import Expr, Load, binary, cast, const, maximum, minimum, select
from ...inference.indices import divisor
from ...layout.layout import Axis, Iter, Layout, grouped
from ...layout.partition import partitions
from ...program import Copy, If, Place, Stmt
from .context import Context
from .elementwise import element_index, inside
from .instructions import ThreadCopies
from .nest import Iterations, conjunction, iterations
from .places import placed
from .runs import runs_aligned
from .side_by_side import beside, rounds


def copy_size(context: Context, s: Copy) -> int:
    """Bytes of the widest piece whose addresses are surely aligned on both sides; 0: not even the narrowest is."""
    unit = context.instructions.copies
    shape = s.dst.buffer.static_shape
    if unit is None or not shape or not _boxed(s, shape):
        return 0
    bits = s.dst.dtype.bits
    for size in unit.sizes:
        elements = size * 8 // bits
        if elements and _aligned(context, s, shape, elements):
            if unit.run == 1 or (_whole(s, elements) and rounds(context, unit.run, s.dst.buffer, elements)):
                return size
    return 0


def copies_each(context: Context, s: Copy) -> int:
    """How many copies each thread starts for one copy of a tile, where a unit counts them; else 1, the group."""
    unit = context.instructions.copies
    if unit is None or unit.run == 1:
        return 1
    return rounds(context, unit.run, s.dst.buffer, copy_size(context, s) * 8 // s.dst.dtype.bits)


def _whole(s: Copy, elements: int) -> bool:
    """Whether the tensor has all of a piece or nothing of it."""
    return divisor(s.src.buffer.shape[-1]) % elements == 0


def _boxed(s: Copy, shape: tuple[int, ...]) -> bool:
    """Whether both regions have the tile's extents, the last of the source's dimensions among them, and bytes of their own."""
    bits = s.dst.dtype.bits
    return (
        bits >= 8
        and s.src.buffer.base is None
        and not s.src.point[-1]
        and _trimmed(s.src.shape) == _trimmed(shape)
    )


def _trimmed(shape: tuple[int | Expr, ...]) -> tuple[int | Expr, ...]:
    k = 0
    while k < len(shape) - 1 and shape[k] == 1:
        k += 1
    return shape[k:]


def _aligned(context: Context, s: Copy, shape: tuple[int, ...], elements: int) -> bool:
    strides = s.src.buffer.row_major_strides()
    if strides[-1] != 1 or shape[-1] % elements:
        return False
    far = gcd(*(divisor(n) for n in strides[:-1]), divisor(s.src.start[-1])) if strides else 0
    return far % elements == 0 and runs_aligned(context, s.dst, len(shape) - 1, elements)


def thread_copy(
    context: Context, unit: ThreadCopies, name: str, s: Copy, exists: Expr | None = None
) -> tuple[Stmt, ...]:
    """All pieces of this thread. What lies outside of the source becomes zero; all of it where ``exists`` does not hold."""
    shape = s.dst.buffer.static_shape
    assert shape is not None
    size = copy_size(context, s)
    elements = size * 8 // s.dst.dtype.bits
    if unit.run > 1:
        at, target, around = beside(context, unit.run, s.dst.buffer, elements)
        taken, source = _source(context, s, _there(s, at), elements, exists)
        return around((unit.copy(size, replace(target, aligned=size), replace(source, aligned=size), taken),))
    mine = _pieces(context, name, shape, elements)
    at = (*mine.index[:-1], context.simple(binary("*", mine.index[-1], elements)))
    taken, source = _source(context, s, _there(s, at), elements, exists)
    to = placed(context, Load(s.dst.buffer, element_index(s.dst, at)), {})
    assert isinstance(to, Load)
    target = Place(to.buffer, to.indices, "w", window=True, aligned=size)
    piece: tuple[Stmt, ...] = (unit.copy(size, target, replace(source, aligned=size), taken),)
    if mine.first:
        piece = (If(conjunction(mine.first), piece, span=s.span),)
    return mine.around(piece, s.span)


def _there(s: Copy, at: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The index in the region that is copied of an element of the tile."""
    return at[len(at) - len(s.src.shape) :] if len(s.src.shape) <= len(at) else _led(s, at)


def _led(s: Copy, at: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The index of a region that has more dimensions than the tile, which are of extent 1."""
    return (*(const(0) for _ in range(len(s.src.shape) - len(at))), *at)


def _pieces(context: Context, name: str, shape: tuple[int, ...], elements: int) -> Iterations:
    """This thread's pieces: the plan's partition of the copy if its runs are long enough, else one of its own."""
    layout = context.plan.loops.get(name)
    parted = None
    if layout is not None and layout.shape == shape and name not in context.plan.windows:
        parted = _shortened(layout, elements)
    whole = (*shape[:-1], shape[-1] // elements)
    if parted is None:
        parted = partitions(whole, context.threads)[0]
    return iterations(context, parted, whole)


def _shortened(layout: Layout, elements: int) -> Layout | None:
    """The partition of runs of ``elements``, if each is in one thread."""
    groups = grouped(layout)
    if groups is None or (not groups[-1] and elements > 1):
        return None
    last = list(groups[-1])
    left = elements
    while left > 1 and last and last[-1].axis is Axis.REGISTER:
        low = last.pop()
        share = gcd(low.extent, left)
        if share < left and share < low.extent:
            return None
        left //= share
        if low.extent > share:
            last.append(Iter(low.extent // share, low.stride * share, Axis.REGISTER))
    if left > 1 or layout.shape[-1] % elements or layout.box[-1] % elements:
        return None
    iters = tuple(i for g in (*groups[:-1], last) for i in g)
    shape, box = ((*x[:-1], x[-1] // elements) for x in (layout.shape, layout.box))
    return replace(layout, shape=shape, box=box, iters=iters)


def _source(
    context: Context, s: Copy, at: tuple[Expr, ...], elements: int, wanted: Expr | None
) -> tuple[Expr | None, Place]:
    """How many bytes of a piece exist (None: surely all), and where it begins; the start of the tensor if there are none."""
    index = element_index(s.src, at)
    conditions = [
        c
        for c in (context.simple(c) for c in inside(context, s.src, at))
        if getattr(c, "value", None) is not True
    ]
    conditions += [] if wanted is None else [wanted]
    place = Place(s.src.buffer, index, "r")
    if not conditions:
        return None, _placed(context, place)
    size = elements * s.dst.dtype.bits // 8
    exists = conjunction(conditions)
    kept = tuple(select(exists, i, const(0, i.dtype)) for i in index)
    end = s.src.buffer.shape[-1]
    if divisor(end) % elements == 0:
        taken = select(exists, const(size), const(0))
    else:
        count = maximum(minimum(binary("-", end, index[-1]), elements), 0)
        taken = select(exists, binary("*", cast(count, INT32), size // elements), const(0))
    return taken, _placed(context, replace(place, indices=kept))


def _placed(context: Context, p: Place) -> Place:
    return replace(p, indices=tuple(placed(context, i, {}) for i in p.indices))
