"""Sums over a loop that threads put together once, behind it: a loop in, which reductions leave their threads' parts apart out.

``total[i] = total[i] * x + part[i]`` with ``part`` the sum over a row is linear in what each thread holds of the row: each thread
can carry a total of its own through the loop. The order of additions, which the language leaves open, is another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...expr import Binary, Buffer, Expr, Load, Space, Var, binary, cast, const, loads
from ...inference.problem import is_whole
from ...inference.rules.reduce import result_layout
from ...layout.algebra import mismatch
from ...layout.layout import Layout
from ...program import Alloc, For, Parallel, Reduce, Stmt, Store
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
    totals = {_carried(s, part) for s in steps}
    total = next(iter(totals)) if len(totals) == 1 else None
    if total is None or any(id(t) not in users and _touches(t, total) for t in statements(loop.body)):
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


def _touches(s: Stmt, b: Buffer) -> bool:
    return not isinstance(s, Alloc) and any(x.storage == b for x in (*read_buffers(s), *written_buffers(s)))


def _carried(s: Parallel, part: Buffer) -> Buffer | None:
    """The fragment to which ``s`` adds ``part`` after it has scaled it, element by element; None if ``s`` does anything else."""
    if len(s.vars) != 1 or len(s.body) != 1 or not isinstance(store := s.body[0], Store):
        return None
    total, value = store.buffer, store.value
    plain = total.space is Space.FRAGMENT and total.source is None and total.dtype == part.dtype
    if (
        not plain
        or s.extents != total.shape
        or not _own(store.indices, s.vars)
        or not isinstance(value, Binary)
    ):
        return None
    for old, new in ((value.a, value.b), (value.b, value.a)):
        if value.op == "+" and _is(new, part, s.vars) and _scaled(old, total, part, s.vars):
            return total
    return None


def _scaled(x: Expr, total: Buffer, part: Buffer, index: tuple[Var, ...]) -> bool:
    if _is(x, total, index):
        return True
    if not isinstance(x, Binary) or x.op != "*":
        return False
    for old, factor in ((x.a, x.b), (x.b, x.a)):
        if _is(old, total, index) and not any(e.buffer.storage in (total, part) for e in loads(factor)):
            return True
    return False


def _is(x: Expr, b: Buffer, index: tuple[Var, ...]) -> bool:
    return isinstance(x, Load) and x.buffer == b and _own(x.indices, index)


def _own(indices: tuple[Expr, ...], index: tuple[Var, ...]) -> bool:
    return len(indices) == len(index) and all(i is v for i, v in zip(indices, index, strict=True))
