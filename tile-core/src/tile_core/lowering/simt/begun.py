"""Accumulators that begin with zeros: takes the step that fills one before a product, says when it stores anything else.

The matrix engine begins an accumulator by itself, so zeros need not be stored. A mask of the form ``0, or -infinity where
hidden`` is stored only for tiles that it may reach: its conditions are asked for a whole tile at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...expr import (
    Binary,
    Buffer,
    Const,
    Expr,
    Load,
    Select,
    Space,
    Unary,
    Var,
    binary,
    const,
    substitute,
    unary,
)
from ...expr.walk import walk
from ...inference.problem import is_whole
from ...program import Bind, Fill, Parallel, Stmt, Store
from .conditions import Run
from .context import Context


def beyond_zeros(context: Context, s: Stmt, c: Buffer) -> Expr | None:
    """Under which condition, the same for all threads, ``s`` stores more than zeros; None: it does not fill all of ``c``, or
    nothing can be told.
    """
    match s:
        case Fill() if s.dst.buffer is c and is_whole(s.dst):
            return None if not isinstance(s.value, Const) else const(s.value.value != 0)
        case Parallel():
            fill = _filled(s, c)
            found = None if fill is None else fill.differs(context, fill.value)
            return found if found is not None and _uniform(found) else None
        case _:
            return None


@dataclass(frozen=True)
class _Filling:
    """``value`` is stored for each index, whose variables have these extents."""

    value: Expr
    extents: Mapping[Var, int]

    def differs(self, context: Context, x: Expr) -> Expr | None:
        """A condition under which ``x`` may be something else than 0 somewhere in the tile."""
        match x:
            case Const():
                return const(x.value != 0)
            case Select():
                parts = [
                    self._both(self.differs(context, value), self.somewhere(context, x.condition, side))
                    for value, side in ((x.then, True), (x.other, False))
                ]
                a, b = parts
                return None if a is None or b is None else binary("or", a, b)
            case _:
                return None

    def _both(self, a: Expr | None, b: Expr | None) -> Expr | None:
        if a is None or b is None:
            return const(False) if False in (getattr(a, "value", 0), getattr(b, "value", 0)) else None
        return binary("and", a, b)

    def somewhere(self, context: Context, c: Expr, holds: bool) -> Expr | None:
        """A condition that holds if ``c`` is ``holds`` for any index, and seldom otherwise."""
        nowhere: Expr | None = Run(context, Var("_", c.dtype), const(0), 1).everywhere(c, not holds)
        for v, n in reversed(self.extents.items()):
            if nowhere is None:
                return None
            nowhere = Run(context, v, const(0), n).everywhere(nowhere)
        return None if nowhere is None else context.simple(_opposite(nowhere))


def _opposite(c: Expr) -> Expr:
    match c:
        case Unary(op="not"):
            return c.value
        case Binary(op="and" | "or"):
            return binary("or" if c.op == "and" else "and", _opposite(c.a), _opposite(c.b))
        case _:
            return unary("not", c)


def _filled(s: Parallel, c: Buffer) -> _Filling | None:
    """The loop as one that stores to every element of ``c``."""
    known: dict[Var, Expr] = {}
    for b in s.body[:-1]:
        if not isinstance(b, Bind):
            return None
        known[b.var] = substitute(b.value, known)
    last = s.body[-1]
    if not isinstance(last, Store) or last.buffer is not c:
        return None
    if last.indices != s.vars or s.extents != c.shape or not all(isinstance(n, int) for n in s.extents):
        return None
    extents = {v: n for v, n in zip(s.vars, s.extents, strict=True) if isinstance(n, int)}
    return _Filling(substitute(last.value, known), extents)


def _uniform(x: Expr) -> bool:
    """Whether all threads find the same: nothing is read but what lies in global memory."""
    return all(not isinstance(e, Load) or e.buffer.space is Space.GLOBAL for e in walk(x))
