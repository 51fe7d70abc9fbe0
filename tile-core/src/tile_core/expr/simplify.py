"""Simplify integer expressions by what is known of their variables: divisions and remainders of mixed-radix sums vanish."""

from __future__ import annotations

from .affine import Linear, linear
from .intervals import Interval, Ranges, interval
from .make import binary, const
from .nodes import Binary, Cast, Const, Expr
from .walk import rebuilt


def simplify(x: Expr, ranges: Ranges) -> Expr:
    """``x`` with sums in normal form, and ``//`` and ``%`` by constants split where the ranges of variables allow it.

    ``ranges`` gives the least and greatest value of a variable. The result is equal to ``x`` whenever the variables keep to them.
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
    for term, factor in form.terms.items():
        part = binary("*", _as(term, like), factor)
        out = part if out is None else binary("+", out, part)
    if out is None:
        return const(form.constant, like.dtype)
    return binary("+", out, form.constant) if form.constant >= 0 else binary("-", out, -form.constant)


def _as(term: Expr, like: Expr) -> Expr:
    return term if term.dtype == like.dtype else Cast(term, like.dtype)


def span_of(form: Linear, ranges: Ranges) -> Interval:
    """Bounds of a sum."""
    low: int | None = form.constant
    high: int | None = form.constant
    for term, factor in form.terms.items():
        at = interval(term, ranges)
        least, most = (at.low, at.high) if factor > 0 else (at.high, at.low)
        low = None if low is None or least is None else low + factor * least
        high = None if high is None or most is None else high + factor * most
    return Interval(low, high)


def _parted(form: Linear, by: int) -> tuple[Linear, Linear]:
    """(q, r) with ``form == q * by + r``; no factor in r is a multiple of ``by``, its constant is in 0 to by - 1."""
    whole = {t: n // by for t, n in form.terms.items() if n % by == 0}
    rest = {t: n for t, n in form.terms.items() if n % by}
    return Linear(form.constant // by, whole), Linear(form.constant % by, rest)


def _inside(form: Linear, by: int, ranges: Ranges) -> bool:
    """Whether ``0 <= form < by``."""
    match span_of(form, ranges):
        case Interval(int(low), int(high)):
            return low >= 0 and high < by
        case _:
            return False


def _divided(x: Binary, form: Linear, by: int, ranges: Ranges) -> Expr:
    """``form // by`` or ``form % by``: terms that are multiples go out, the rest stays if it may reach ``by``."""
    out, rest = _parted(form, by)
    inside = _inside(rest, by, ranges)
    if x.op == "%":
        return summed(rest, x) if inside else binary("%", summed(rest, x), by)
    return summed(out, x) if inside else binary("+", summed(out, x), _shared_factor(rest, by, x, ranges))


def _shared_factor(rest: Linear, by: int, x: Binary, ranges: Ranges) -> Expr:
    """``(a * g + small) // (b * g)`` is ``a // b`` when ``0 <= small < g``."""
    for g in sorted({abs(n) for n in rest.terms.values() if by % n == 0 and abs(n) > 1}, reverse=True):
        large, small = _parted(rest, g)
        if _inside(small, g, ranges):
            return _divided(Binary("//", x.a, const(by // g, x.dtype)), large, by // g, ranges)
    return binary("//", summed(rest, x), by)


def _compared(x: Expr, ranges: Ranges) -> Expr:
    if not isinstance(x, Binary):
        return x
    at = span_of(linear(x.a).plus(linear(x.b), -1), ranges)
    low, high = -INFINITY if at.low is None else at.low, INFINITY if at.high is None else at.high
    known = {
        "<": (high < 0, low >= 0),
        "<=": (high <= 0, low > 0),
        ">": (low > 0, high <= 0),
        ">=": (low >= 0, high < 0),
        "==": (low == high == 0, low > 0 or high < 0),
        "!=": (low > 0 or high < 0, low == high == 0),
    }[x.op]
    return const(True) if known[0] else const(False) if known[1] else x


INFINITY = float("inf")
