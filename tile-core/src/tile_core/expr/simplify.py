"""Simplify integer expressions by what is known of their variables: divisions and remainders of mixed-radix sums vanish."""

from __future__ import annotations

from collections.abc import Mapping

from .affine import Interval, Linear, bounds, linear
from .make import binary, const
from .nodes import Binary, Cast, Const, Expr, Var
from .walk import rebuilt

Ranges = Mapping[Var, Interval]


def simplify(x: Expr, ranges: Ranges) -> Expr:
    """``x`` with sums in normal form, and ``//`` and ``%`` by constants split where the ranges of variables allow it.

    ``ranges`` gives least and greatest values. The result is equal to ``x`` whenever the variables keep to them.
    """
    match x:
        case Binary(op="//" | "%", a=a, b=Const(value=by)) if x.dtype.is_integer and by > 0:
            return _divided(x, linear(simplify(a, ranges)), int(by), ranges)
        case Binary(op="+" | "-" | "*") if x.dtype.is_integer:
            inner = rebuilt(x, lambda e: simplify(e, ranges))
            return summed(linear(inner), inner)
        case Binary(op="<" | "<=" | ">" | ">=" | "==" | "!=") if x.a.dtype.is_integer:
            return _compared(rebuilt(x, lambda e: simplify(e, ranges)), ranges)
        case _:
            return rebuilt(x, lambda e: simplify(e, ranges))


def summed(form: Linear, like: Expr) -> Expr:
    """A linear form as an expression of the type of ``like``; terms in the order they came."""
    out: Expr | None = None
    for term, factor in form.terms:
        part = binary("*", _as(term, like), factor)
        out = part if out is None else binary("+", out, part)
    if out is None:
        return const(form.constant, like.dtype)
    return binary("+", out, form.constant) if form.constant >= 0 else binary("-", out, -form.constant)


def _as(term: Expr, like: Expr) -> Expr:
    return term if term.dtype == like.dtype else Cast(term, like.dtype)


def _divided(x: Binary, form: Linear, by: int, ranges: Ranges) -> Expr:
    """``form // by`` or ``form % by``: terms that are multiples go out, the rest stays if it may reach ``by``."""
    out = Linear(form.constant // by, tuple((t, n // by) for t, n in form.terms if n % by == 0))
    rest = Linear(form.constant % by, tuple((t, n) for t, n in form.terms if n % by))
    inner = summed(rest, x)
    low, high = bounds(inner, ranges)
    if low >= 0 and high < by:
        return summed(out, x) if x.op == "//" else inner
    if x.op == "%":
        return binary("%", inner, by)
    return binary("+", summed(out, x), _shared_factor(rest, by, x, ranges))


def _shared_factor(rest: Linear, by: int, x: Binary, ranges: Ranges) -> Expr:
    """``(a * g + small) // (b * g)`` is ``a // b`` when ``0 <= small < g``."""
    for g in sorted({abs(n) for _, n in rest.terms if by % n == 0 and abs(n) > 1}, reverse=True):
        large = Linear(rest.constant // g, tuple((t, n // g) for t, n in rest.terms if n % g == 0))
        small = summed(Linear(rest.constant % g, tuple((t, n) for t, n in rest.terms if n % g)), x)
        low, high = bounds(small, ranges)
        if low >= 0 and high < g:
            return _divided(Binary("//", x.a, const(by // g, x.dtype)), large, by // g, ranges)
    return binary("//", summed(rest, x), by)


def _compared(x: Expr, ranges: Ranges) -> Expr:
    if not isinstance(x, Binary):
        return x
    low, high = bounds(summed(linear(x.a).plus(linear(x.b), -1), x.a), ranges)
    known = {
        "<": (high < 0, low >= 0),
        "<=": (high <= 0, low > 0),
        ">": (low > 0, high <= 0),
        ">=": (low >= 0, high < 0),
        "==": (low == high == 0, low > 0 or high < 0),
        "!=": (low > 0 or high < 0, low == high == 0),
    }[x.op]
    return const(True) if known[0] else const(False) if known[1] else x
