"""Ops that multiply an accumulator by factors of its rows, which mostly are one: then nothing need be waited for.

Of a loop with several products into one accumulator, in which the factors of a row's new maximum stand between. An op that asks
its threads for a factor that is not one, and waits for the products itself if there is any, need not be behind their end.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...expr import Binary, Buffer, Expr, Load, Space, Var
from ...program import Gemm, Parallel, Stmt, Store
from .model import GROUP
from .region import LoopRegion


def rescaled(s: Stmt) -> tuple[Buffer, Buffer] | None:
    """(accumulator, factors) if ``s`` multiplies each element of a fragment by a factor of its row, and does nothing else."""
    if not isinstance(s, Parallel) or len(s.body) != 1 or not isinstance(store := s.body[0], Store):
        return None
    value, acc = store.value, store.buffer
    if not isinstance(value, Binary) or value.op != "*" or not _own(store.indices, s.vars):
        return None
    for old, factor in ((value.a, value.b), (value.b, value.a)):
        if (
            isinstance(old, Load)
            and isinstance(factor, Load)
            and old.buffer is acc
            and _own(old.indices, s.vars)
            and factor.buffer is not acc
            and _own(factor.indices, s.vars[: len(factor.indices)])
            and {acc.space, factor.buffer.space} == {Space.FRAGMENT}
        ):
            return acc, factor.buffer
    return None


def seldom(region: LoopRegion, observed: Mapping[str, str]) -> frozenset[str]:
    """Such ops of a loop, where several products write the accumulator.

    ``observed``: how the end of each op that an engine does is seen.
    """
    products: dict[Buffer, int] = {}
    for op in region.ops:
        s = region.statement(op)
        if isinstance(s, Gemm) and observed.get(op) == GROUP:
            products[s.c.buffer.storage] = products.get(s.c.buffer.storage, 0) + 1
    found = {op: rescaled(region.statement(op)) for op in region.ops}
    return frozenset(op for op, pair in found.items() if pair and products.get(pair[0].storage, 0) > 1)


def _own(indices: tuple[Expr, ...], vars: tuple[Var, ...]) -> bool:
    return len(indices) == len(vars) and all(i is v for i, v in zip(indices, vars, strict=True))
