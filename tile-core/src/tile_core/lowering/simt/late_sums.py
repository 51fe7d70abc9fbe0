"""Sums over a loop that threads put together once, behind it: a loop in, which reductions leave their threads' parts apart out.

Where ``part`` of a carried total (inference/totals.py) is the sum over a row, each thread can carry a total of its own through the
loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...expr import Buffer, Load, Space, binary, cast, const
from ...inference.problem import is_whole
from ...inference.rules.reduce import result_layout
from ...inference.totals import added
from ...layout.algebra import mismatch
from ...layout.layout import Layout
from ...program import Alloc, For, Parallel, Reduce, Stmt
from ...program.visit import read_buffers, statements, written_buffers
from .context import Context
from .folding import Fold, parts_apart, together


@dataclass(frozen=True)
class LateSum:
    """``reduces`` are the nodes' names, ``layout`` that of what they sum along ``axis``; ``total`` is carried along."""

    reduces: tuple[str, ...]
    total: Buffer
    layout: Layout
    axis: int
    fold: Fold

    def split(self, context: Context) -> Iterator[Stmt]:
        """Before the loop one of the threads that share a row keeps its total."""
        yield from parts_apart(
            context, self.layout, (self.axis,), context.register_file(self.total), self.fold
        )

    def joined(self, context: Context) -> Iterator[Stmt]:
        """After the loop all of them have the sum of theirs."""
        yield from together(context, self.layout, (self.axis,), context.register_file(self.total), self.fold)


def late_sums(context: Context, loop: For) -> list[LateSum]:
    """The sums of a loop's body that can be put together behind it."""
    parts = dict.fromkeys(s.dst.buffer for s in loop.body if isinstance(s, Reduce))
    found = (_late(context, loop, b) for b in parts)
    return [s for s in found if s is not None]


def _late(context: Context, loop: For, part: Buffer) -> LateSum | None:
    """The sums into ``part``, each of which is added to one total before the next."""
    sums = [s for s in loop.body if isinstance(s, Reduce) and s.dst.buffer is part]
    own = {id(s) for s in sums}
    users = {id(t): t for t in statements(context.launch.body) if id(t) not in own and _touches(t, part)}
    steps = [t for t in loop.body if isinstance(t, Parallel) and any(id(u) in users for u in t.body)]
    order = [id(s) for s in loop.body if id(s) in own or any(s is t for t in steps)]
    if len(users) != len(steps) or order != [id(s) for pair in zip(sums, steps, strict=False) for s in pair]:
        return None
    found = [added(s) for s in steps]
    totals = {f.total for f in found if f is not None and f.part is part and f.total.dtype == part.dtype}
    total = next(iter(totals)) if len(totals) == 1 and None not in found else None
    if total is None or not all(_keeps(t, total) for t in loop.body if not any(t is s for s in steps)):
        return None
    sources = [_source(context, s, total) for s in sums]
    layout, axis = sources[0] or (None, 0)
    if layout is None or any(found != (layout, axis) for found in sources):
        return None
    fold = Fold(
        lambda index: cast(Load(sums[0].src.buffer, index), part.dtype),
        lambda a, b: binary("+", a, b),
        const(0.0, part.dtype),
    )
    return LateSum(tuple(context.name_of(s) for s in sums), total, layout, axis, fold)


def _source(context: Context, s: Reduce, total: Buffer) -> tuple[Layout, int] | None:
    """The layout of what is summed and along which axis; None if threads cannot keep their parts of the result."""
    part, source = s.dst.buffer, s.src.buffer
    whole = is_whole(s.dst) and is_whole(s.src) and source.source is None and part.source is None
    fragments = part.space is Space.FRAGMENT and source.space is Space.FRAGMENT
    if s.kind != "sum" or not s.clear or not whole or not fragments or part.dtype.name != "float32":
        return None
    layout, axis = context.layout(source), s.axis % len(source.shape)
    result = result_layout(layout, axis, False)
    if result is None or any(mismatch(result, context.layout(b)) is not None for b in (part, total)):
        return None
    return layout, axis


def _keeps(s: Stmt, total: Buffer) -> bool:
    """Whether a statement leaves a total alone, or multiplies it by factors."""
    found = added(s)
    alone = not any(_touches(t, total) for t in statements((s,)))
    return alone or (found is not None and found.total is total and found.part is None)


def _touches(s: Stmt, b: Buffer) -> bool:
    return not isinstance(s, Alloc) and any(x.storage == b for x in (*read_buffers(s), *written_buffers(s)))
