"""Which iterations a thread runs: a partition of a loop nest as thread digits, register loops and guards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from ...expr import Expr, Var, binary, const
from ...expr.affine import NOTHING, Linear
from ...expr.intervals import Interval
from ...layout.layout import Axis, Iter, Layout, grouped
from ...layout.partition import partitions
from ...program import For, If, Stmt
from ...span import Span
from .context import Context


@dataclass(frozen=True)
class Iterations:
    """The iterations of one thread.

    ``index``: this iteration's coordinates, over ``loops`` (a register variable with its extent each, outermost first) and the
    thread's digits. ``guards``: conditions under which the iteration exists. ``first``: conditions that hold in one of the
    threads that share an iteration.
    """

    index: tuple[Expr, ...]
    loops: tuple[tuple[Var, int], ...]
    guards: tuple[Expr, ...]
    first: tuple[Expr, ...] = ()

    def around(self, body: Sequence[Stmt], span: Span | None = None) -> tuple[Stmt, ...]:
        """``body`` in the register loops and under the guards."""
        out = tuple(body)
        if self.guards:
            out = (If(conjunction(self.guards), out, span=span),)
        for var, extent in reversed(self.loops):
            if extent > 1:
                out = (For(var, const(0), extent, out, "unroll", span=span),)
        return out


def conjunction(conditions: Sequence[Expr]) -> Expr:
    out = conditions[0]
    for c in conditions[1:]:
        out = binary("and", out, c)
    return out


def thread_digit(context: Context, layout: Layout, it: Iter) -> Expr:
    """The value of a digit of the thread number. Threads between the digits of a layout get one above the digit's extent."""
    return _digit_value(context, layout.base(Axis.THREAD), it.stride, _room(layout, it))


def low_digit(context: Context, layout: Layout, it: Iter) -> Expr:
    """The value of the less significant part ``it`` of a digit of the thread number."""
    return _digit_value(context, layout.base(Axis.THREAD), it.stride, it.extent)


def _digit_value(context: Context, base: int, stride: int, room: int) -> Expr:
    key = context.team.stream, base, stride, room
    found = context.digits.get(key)
    if found is None:
        context.ranges.setdefault(context.thread, Interval(0, context.threads - 1))
        value = binary("%", binary("//", binary("-", context.thread, base), stride), room)
        found = context.digits[key] = context.simple(value)
    return found


def _room(layout: Layout, it: Iter) -> int:
    """How many values there are between a digit and the next larger one of the thread number."""
    above = [i.stride for i in layout.on(Axis.THREAD) if i.stride >= it.stride * it.extent]
    step = min(above, default=0)
    return step // it.stride if step and step % it.stride == 0 else it.extent


def members(context: Context, layout: Layout) -> list[Expr]:
    """Conditions under which this thread is one of those that the layout names."""
    out: list[Expr] = []
    base, end = layout.base(Axis.THREAD), layout.cosize(Axis.THREAD)
    if base:
        out.append(binary("<=", base, context.thread))
    if context.threads > end:
        out.append(binary("<", context.thread, end))
    position = 1
    for it in sorted(layout.on(Axis.THREAD), key=lambda i: i.stride):
        room, gap = _room(layout, it), it.stride // position
        if gap > 1 and it.stride % position == 0:  # threads that differ by what no digit counts
            out.append(binary("==", _digit_value(context, base, position, gap), 0))
        if room > it.extent:
            out.append(binary("<", thread_digit(context, layout, it), it.extent))
        position = it.stride * room
    return out


def iterations(
    context: Context,
    layout: Layout,
    extents: Sequence[int],
    window: Mapping[int, tuple[int, int]] | None = None,
) -> Iterations:
    """The iterations of this thread under a partition. ``window``: dimension -> (start, count) that really runs."""
    groups = grouped(layout)
    if groups is None:
        return iterations(context, partitions(tuple(layout.shape), context.threads)[0], extents, window)
    loops: list[tuple[Var, int]] = []
    index: list[Expr] = []
    for group in groups:
        place = prod(i.extent for i in group)
        at = NOTHING
        for it in group:
            place //= it.extent
            at = at.plus(context.form(_digit(context, layout, it, loops)), place)
        index.append(context.sum(at))
    guards = [*_guards(context, layout, index, window or {}), *members(context, layout)]
    first = [binary("==", thread_digit(context, layout, r), 0) for r in layout.replicas if r.extent > 1]
    shifted = [
        context.sum(context.form(i).plus(Linear(-(window or {}).get(n, (0, 0))[0])))
        for n, i in enumerate(index)
    ]
    kept = tuple(g for g in (context.simple(g) for g in guards) if not always(g))
    return Iterations(tuple(shifted), tuple(loops), kept, tuple(first))


def _digit(context: Context, layout: Layout, it: Iter, loops: list[tuple[Var, int]]) -> Expr:
    if it.extent == 1:
        return const(0)
    if it.axis is Axis.THREAD and it.stride:
        return thread_digit(context, layout, it)
    var = context.var("r", it.extent)
    loops.append((var, it.extent))
    return var


def _guards(
    context: Context, layout: Layout, index: Sequence[Expr], window: Mapping[int, tuple[int, int]]
) -> list[Expr]:
    out: list[Expr] = []
    for n, (i, extent, padded) in enumerate(zip(index, layout.shape, layout.box, strict=True)):
        if n in window:
            start, count = window[n]
            out += [binary("<=", start, i), binary("<", i, start + count)]
        elif padded > extent:
            out.append(binary("<", i, extent))
    return out


def always(x: Expr) -> bool:
    """Whether a condition is the constant true."""
    return getattr(x, "value", None) is True


def dealt(
    context: Context, extents: Sequence[int | Expr], body: Callable[[tuple[Expr, ...]], Sequence[Stmt]]
) -> tuple[Stmt, ...]:
    """Iterations of a nest without a partition (an extent is symbolic): the threads take them in turn."""
    from ...expr import ceildiv, dim

    total: int | Expr = 1
    for e in extents:
        total = dim(binary("*", total, e)) if isinstance(e, Expr) or isinstance(total, Expr) else total * e
    turn = context.var("turn", 1 << 31)
    number = binary("+", binary("*", turn, context.threads), context.thread)
    index: list[Expr] = []
    rest: Expr = number
    for e in reversed(list(extents)):
        index.append(binary("%", rest, e))
        rest = binary("//", rest, e)
    inner = If(binary("<", number, total), tuple(body(tuple(reversed(index)))))
    return (For(turn, const(0), dim(ceildiv(total, context.threads)), (inner,)),)
