"""Loops over elements: ``T.Parallel``, copies, fills, transposes, atomic updates of tiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from ...expr import Buffer, Expr, Load, Space, Var, binary, cast, const, reads, select, substitute
from ...layout.layout import Layout
from ...layout.partition import partitions
from ...program import (
    Atomic,
    AtomicTile,
    Copy,
    Fill,
    If,
    Parallel,
    Region,
    Stmt,
    Store,
    Transpose,
)
from ...span import Span
from ...verification.comparisons import never_above
from .context import Context
from .loops import Body, Loop, accesses, covers, iterated
from .nearby import moved_near
from .nest import Iterations, conjunction, dealt, iterations
from .places import in_registers
from .staging import load_back, store_out


def lower_loop(context: Context, loop: Loop) -> tuple[Stmt, ...]:
    """The iterations of one thread, with fragments that it cannot reach staged through shared memory around them."""
    if not all(isinstance(e, int) for e in loop.extents):
        return _dealt(context, loop)
    extents = tuple(e for e in loop.extents if isinstance(e, int))
    if prod(extents) == 0:
        return ()
    part = _partition(context, loop, extents)
    mine = iterations(context, part.layout, extents, part.window)
    return staged_loop(context, loop, mine, part.trusted, None if part.window else part.layout)


@dataclass(frozen=True)
class Partition:
    """Which thread runs which iteration. ``trusted``: fragments that are then in the right thread; None: all that the plan says."""

    layout: Layout
    window: Mapping[int, tuple[int, int]]
    trusted: frozenset[Buffer] | None = None


def _partition(context: Context, loop: Loop, extents: tuple[int, ...]) -> Partition:
    """The plan's partition; for a loop that the plan does not know, the layout of a fragment that it walks, or any."""
    layout = context.plan.loops.get(loop.name)
    window = context.plan.windows.get(loop.name, {})
    if layout is not None and len(layout.shape) == len(extents):
        real = tuple(window[n][1] if n in window else s for n, s in enumerate(layout.shape))
        if real == extents:
            return Partition(layout, window)
    walked = [
        b
        for b, index, _ in accesses(loop.body)
        if b.space is Space.FRAGMENT and index == loop.vars and b.shape == extents
    ]
    for b in walked:
        if b.storage in context.layouts and b.source is None:
            own = context.layout(b)
            alike = frozenset(w for w in walked if context.layouts.get(w) == own)
            return Partition(own, {}, alike)
    return Partition(partitions(extents or (1,), context.threads)[0], {}, frozenset())


def staged_loop(
    context: Context,
    loop: Loop,
    mine: Iterations,
    trusted: frozenset[Buffer] | None = None,
    layout: Layout | None = None,
) -> tuple[Stmt, ...]:
    """``loop`` over the iterations ``mine``; fragments that are elsewhere come by shuffles, or stand in shared memory meanwhile.

    ``layout``: the partition of the loop that the iterations come from.
    """
    values = dict(zip(loop.vars, mine.index, strict=False))
    read, written = _unreachable(context, loop, values, trusted)
    if layout is not None and (read or written):
        near = moved_near(context, loop, layout, read, written)
        if near.fragments:
            held = None if trusted is None else trusted | near.fragments
            return (*near.before, *staged_loop(context, near.loop, mine, held, layout), *near.after)
    if mine.first:
        if any(f.storage not in written for f in _written_fragments(loop)):
            if _in_place(
                loop
            ):  # copies of an iteration would read what the first of them has already changed
                return staged_loop(context, loop, mine, frozenset())
        else:
            mine = replace(mine, guards=(*mine.guards, *mine.first), first=())
    staged: dict[Buffer, Buffer] = {}
    before: list[Stmt] = []
    after: list[Stmt] = []
    for fragment in {**read, **written}:
        shape = [d for d in fragment.shape if isinstance(d, int)]
        staged[fragment] = context.scratch(f"{fragment.name}_staged", prod(shape), fragment.dtype)
        if fragment in read or not covers(loop, fragment):
            before += store_out(context, fragment, staged[fragment], loop.span)
        if fragment in written:
            after += load_back(context, fragment, staged[fragment], loop.span)
    return (*before, *iterated(context, loop, mine, staged, values), *after)


def _written_fragments(loop: Loop) -> Iterator[Buffer]:
    return (b for b, _, write in accesses(loop.body) if write and b.space is Space.FRAGMENT)


def _in_place(loop: Loop) -> bool:
    """Whether a buffer that all threads see is read and written."""
    seen = [
        (b.storage, write) for b, _, write in accesses(loop.body) if b.space in (Space.SHARED, Space.GLOBAL)
    ]
    return bool({b for b, write in seen if write} & {b for b, write in seen if not write})


def _dealt(context: Context, loop: Loop) -> tuple[Stmt, ...]:
    def body(index: tuple[Expr, ...]) -> Sequence[Stmt]:
        values = dict(zip(loop.vars, index, strict=True))
        return Body(context, {}, (), values).run(loop.body)

    return dealt(context, loop.extents, body)


def _unreachable(
    context: Context, loop: Loop, values: Mapping[Var, Expr], trusted: frozenset[Buffer] | None
) -> tuple[dict[Buffer, None], dict[Buffer, None]]:
    """Fragments that the loop reads, and that it writes, elsewhere than in this thread's registers."""
    moved = {
        m.buffer.storage
        for m in context.plan.moves
        if m.buffer is not None and m.node == loop.name and not m.conversion.free
    }

    def away(buffer: Buffer, index: Sequence[Expr]) -> bool:
        if buffer.storage in moved or (trusted is not None and buffer.storage not in trusted):
            return True
        at = tuple(substitute(i, dict(values)) for i in index)
        return any(reads(i) for i in at) or not in_registers(context, buffer, at)

    held = [access for access in accesses(loop.body) if access[0].space is Space.FRAGMENT]
    # A fragment that is read here and written there must be in one place: one such access sends all of them.
    staged = {buffer.storage for buffer, index, _ in held if away(buffer, index)}
    kept = [(buffer.storage, write) for buffer, _, write in held if buffer.storage in staged]
    read: dict[Buffer, None] = {b: None for b, write in kept if not write}
    written: dict[Buffer, None] = {b: None for b, write in kept if write}
    return read, written


def as_loop(context: Context, name: str, s: Copy | Fill | Transpose | AtomicTile) -> Loop:
    """A tile op as a loop over its elements."""
    shape = s.src.shape if isinstance(s, Transpose) else s.dst.shape
    vars = tuple(context.var("i", e if isinstance(e, int) else 1 << 31) for e in shape)
    match s:
        case Copy():
            value = cast(read(context, s.src, vars), s.dst.dtype)
            body = write(context, s.dst, vars, value, s.span)
        case Fill():
            body = write(context, s.dst, vars, s.value, s.span)
        case Transpose():
            swapped = (*vars[:-2], vars[-1], vars[-2])
            body = write(context, s.dst, swapped, cast(read(context, s.src, vars), s.dst.dtype), s.span)
        case AtomicTile():
            value = cast(read(context, s.value, vars), s.dst.dtype)
            inner = Atomic(s.op, s.dst.buffer, element_index(s.dst, vars), value, s.order, span=s.span)
            body = guarded(context, s.dst, vars, inner)
    return Loop(name, vars, shape, body, s.span)


def element_index(r: Region, vars: Sequence[Expr]) -> tuple[Expr, ...]:
    """The index in the buffer of an element of a region."""
    rest = iter(vars)
    return tuple(a if p else a + next(rest) for a, p in zip(r.start, r.point, strict=True))


def inside(context: Context, r: Region, vars: Sequence[Expr]) -> list[Expr]:
    """Conditions under which an element of a region is in its buffer; those that always hold are left out."""
    known = context.known
    out: list[Expr] = []
    for at, start, extent, size in zip(
        element_index(r, vars), r.start, r.extent, r.buffer.shape, strict=True
    ):
        last = binary("+", start, binary("-", extent, 1))
        if not never_above(last, binary("-", size, 1), known):
            out.append(binary("<", at, size))
        if not never_above(const(0), start, known):
            out.append(binary(">=", at, 0))
    return out


def read(context: Context, r: Region, vars: Sequence[Expr]) -> Expr:
    """An element of a region; zero outside its buffer."""
    value: Expr = Load(r.buffer, element_index(r, vars), span=r.span)
    conditions = inside(context, r, vars)
    return select(conjunction(conditions), value, const(0, r.dtype)) if conditions else value


def write(
    context: Context, r: Region, vars: Sequence[Expr], value: Expr, span: Span | None
) -> tuple[Stmt, ...]:
    """Set an element of a region; nothing outside its buffer."""
    return guarded(context, r, vars, Store(r.buffer, element_index(r, vars), value, span=span))


def guarded(context: Context, r: Region, vars: Sequence[Expr], s: Stmt) -> tuple[Stmt, ...]:
    conditions = inside(context, r, vars)
    return (If(conjunction(conditions), (s,), span=s.span),) if conditions else (s,)


def parallel_loop(name: str, s: Parallel) -> Loop:
    return Loop(name, s.vars, s.extents, s.body, s.span)
