"""Totals that a loop carries: ``total[i] = total[i] * x + part[i]``, linear in what each thread or team of threads adds.

So parts of a total may be carried apart and put together behind the loop. The order of additions, which the language leaves open,
is another one.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..expr import Binary, Buffer, Expr, Load, Space, Var, loads
from ..program import Parallel, Stmt, Store


@dataclass(frozen=True)
class Added:
    """A step of a total: ``old``, what it was before, mostly multiplied by a factor; ``part`` is added, if there is one."""

    total: Buffer
    old: Expr
    part: Buffer | None


def added(s: Stmt) -> Added | None:
    """The step of a total that a loop over its elements is; None if it does anything else."""
    if not isinstance(s, Parallel) or len(s.vars) != 1 or len(s.body) != 1:
        return None
    store = s.body[0]
    if not isinstance(store, Store) or s.extents != store.buffer.shape or not _own(store.indices, s.vars):
        return None
    total, value = store.buffer, store.value
    if total.space is not Space.FRAGMENT or total.source is not None:
        return None
    if _scaled(value, total, s.vars):
        return Added(total, value, None)
    if not isinstance(value, Binary) or value.op != "+":
        return None
    for old, new in ((value.a, value.b), (value.b, value.a)):
        part = new.buffer if isinstance(new, Load) and _own(new.indices, s.vars) else None
        if part is not None and part is not total and _scaled(old, total, s.vars, part):
            return Added(total, old, part)
    return None


def _scaled(x: Expr, total: Buffer, index: tuple[Var, ...], part: Buffer | None = None) -> bool:
    if _is(x, total, index):
        return True
    if not isinstance(x, Binary) or x.op != "*":
        return False
    return any(
        _is(old, total, index) and not any(e.buffer.storage in (total, part) for e in loads(factor))
        for old, factor in ((x.a, x.b), (x.b, x.a))
    )


def _is(x: Expr, b: Buffer, index: tuple[Var, ...]) -> bool:
    return isinstance(x, Load) and x.buffer == b and _own(x.indices, index)


def _own(indices: tuple[Expr, ...], index: tuple[Var, ...]) -> bool:
    return len(indices) == len(index) and all(i is v for i, v in zip(indices, index, strict=True))
