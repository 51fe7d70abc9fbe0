"""Amounts that may depend on symbolic dimensions: products and sums of numbers and integer expressions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..dtypes import INT64
from ..expr import Const, Expr, cast, substitute, variables

Amount = int | Expr


def amount(x: Amount, dims: Mapping[str, int] | None = None) -> Amount:
    """``x`` with dimensions replaced by ``dims`` (name -> value), in 64 bits; a number if all are known."""
    if not isinstance(x, Expr):
        return x
    if dims:
        known = {v: Const(dims[v.name], v.type) for v in variables(x) if v.name in dims}
        x = substitute(x, known) if known else x
    wide = cast(x, INT64)
    return int(wide.value) if isinstance(wide, Const) else wide


def times(*factors: Amount) -> Amount:
    """The product, numbers first."""
    number = 1
    rest: Amount = 1
    for f in factors:
        if isinstance(f, Expr):
            rest = f if rest == 1 and isinstance(rest, int) else rest * f
        else:
            number *= f
    if isinstance(rest, int) or number == 0:
        return number
    return rest if number == 1 else rest * number


def plus(terms: Iterable[Amount]) -> Amount:
    """The sum, numbers last."""
    number = 0
    rest: Expr | None = None
    for t in terms:
        if isinstance(t, Expr):
            rest = t if rest is None else rest + t
        else:
            number += t
    if rest is None:
        return number
    return rest if number == 0 else rest + number


def known(x: Amount) -> int | None:
    """The number, or None if it depends on a dimension."""
    return x if isinstance(x, int) else None
