"""Steps that seldom have anything to do: takes one, says for which tiles it stores more than what is there anyway.

A mask is asked for a whole tile at once: few tiles lie across the edge of what a product may see. Zeros in front of a product
need not be stored at all, since the matrix engine begins an accumulator by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

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
    """Under which condition, the same for all threads, ``s`` stores more than zeros; None: it does not fill all of ``c``."""
    match s:
        case Fill() if s.dst.buffer is c and is_whole(s.dst):
            return const(not _is_zero(s.value))
        case Parallel():
            step = _step(s)
            if step is None or step.store.buffer is not c or not step.whole:
                return None
            return step.differs(context, _is_zero)
        case _:
            return None


def changes(context: Context, s: Stmt) -> Expr | None:
    """Under which condition, the same for all threads, ``s`` gives a fragment another value; None: always, as far as is known."""
    step = _step(s) if isinstance(s, Parallel) else None
    if step is None or step.store.buffer.space is not Space.FRAGMENT:
        return None
    found = step.differs(context, step.is_kept)
    return None if getattr(found, "value", None) is True else found


@dataclass(frozen=True)
class _Step:
    """``store`` for each index, whose variables have these extents."""

    store: Store
    extents: Mapping[Var, int]

    @property
    def whole(self) -> bool:
        """Whether every element of the tile is stored, in its place."""
        return self.store.indices == tuple(self.extents) and self.store.buffer.shape == tuple(
            self.extents.values()
        )

    def is_kept(self, x: Expr) -> bool:
        """Whether ``x`` is what the element is."""
        own = self.store
        return (
            isinstance(x, Load)
            and x.buffer is own.buffer
            and all(i is j for i, j in zip(x.indices, own.indices, strict=True))
        )

    def differs(self, context: Context, usual: Callable[[Expr], bool]) -> Expr:
        """A condition, true for sure if the value is anything else than ``usual`` anywhere in the tile."""
        found = self._differs(context, self.store.value, usual)
        return found if _uniform(found) else const(True)

    def _differs(self, context: Context, x: Expr, usual: Callable[[Expr], bool]) -> Expr:
        if usual(x):
            return const(False)
        if not isinstance(x, Select):
            return const(True)
        out: Expr = const(False)
        for value, side in ((x.then, True), (x.other, False)):
            other = self._differs(context, value, usual)
            if getattr(other, "value", None) is not False:
                out = binary("or", out, binary("and", self.somewhere(context, x.condition, side), other))
        return out

    def somewhere(self, context: Context, c: Expr, holds: bool) -> Expr:
        """A condition that holds if ``c`` is ``holds`` for any index, and seldom otherwise."""
        nowhere: Expr | None = Run(context, Var("_", c.dtype), const(0), 1).everywhere(c, not holds)
        for v, n in reversed(list(self.extents.items())):
            nowhere = None if nowhere is None else Run(context, v, const(0), n).everywhere(nowhere)
        return const(True) if nowhere is None else context.simple(_opposite(nowhere))


def _opposite(c: Expr) -> Expr:
    match c:
        case Unary(op="not"):
            return c.value
        case Binary(op="and" | "or"):
            return binary("or" if c.op == "and" else "and", _opposite(c.a), _opposite(c.b))
        case _:
            return unary("not", c)


def _step(s: Parallel) -> _Step | None:
    """The loop as one that stores once for each index."""
    known: dict[Var, Expr] = {}
    for b in s.body[:-1]:
        if not isinstance(b, Bind):
            return None
        known[b.var] = substitute(b.value, known)
    last = s.body[-1]
    if not isinstance(last, Store) or not all(isinstance(n, int) for n in s.extents):
        return None
    extents = {v: n for v, n in zip(s.vars, s.extents, strict=True) if isinstance(n, int)}
    return _Step(replace(last, value=substitute(last.value, known)), extents)


def _is_zero(x: Expr) -> bool:
    return isinstance(x, Const) and x.value == 0


def _uniform(x: Expr) -> bool:
    """Whether all threads find the same: nothing is read but what lies in global memory."""
    return all(not isinstance(e, Load) or e.buffer.space is Space.GLOBAL for e in walk(x))
