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
    """``reduce`` is the node's name, ``layout`` that of what it sums along ``axis``; ``total`` is carried along."""

    reduce: str
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
    found = (_late(context, loop, s) for s in loop.body if isinstance(s, Reduce))
    return [s for s in found if s is not None]


def _late(context: Context, loop: For, s: Reduce) -> LateSum | None:
    part, source = s.dst.buffer, s.src.buffer
    whole = is_whole(s.dst) and is_whole(s.src) and source.source is None and part.source is None
    fragments = part.space is Space.FRAGMENT and source.space is Space.FRAGMENT
    if s.kind != "sum" or not s.clear or not whole or not fragments or part.dtype.name != "float32":
        return None
    users = [t for t in statements(context.launch.body) if t is not s and _touches(t, part)]
    steps = [t for t in loop.body if isinstance(t, Parallel) and len(users) == 1 and users[0] in t.body]
    total = _carried(steps[0], part) if steps else None
    if total is None or any(t is not users[0] and _touches(t, total) for t in statements(loop.body)):
        return None
    layout, axis = context.layout(source), s.axis % len(source.shape)
    result = result_layout(layout, axis, False)
    if result is None or any(mismatch(result, context.layout(b)) is not None for b in (part, total)):
        return None
    fold = Fold(
        lambda index: cast(Load(source, index), part.dtype),
        lambda a, b: binary("+", a, b),
        const(0.0, part.dtype),
    )
    return LateSum(context.name_of(s), total, layout, axis, fold)


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
