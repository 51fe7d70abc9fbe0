"""Simplify integer expressions by what is known of their variables: divisions and remainders of mixed-radix sums vanish."""

from __future__ import annotations

from .affine import NOTHING, Linear, product, unbounded
from .intervals import Interval, Ranges, interval
from .make import binary, const
from .nodes import Binary, Cast, Const, Expr, Unary, Var
from .walk import rebuilt


def simplify(x: Expr, ranges: Ranges) -> Expr:
    """``x`` with sums in normal form, and ``//`` and ``%`` by constants split where the ranges of variables allow it.

    ``ranges`` gives the least and greatest value of a variable. The result is equal to ``x`` whenever the variables keep to them.
    """
    match x:
        case Const() | Var():
            return x
        case Binary(op="<" | "<=" | ">" | ">=" | "==" | "!=") if x.a.dtype.is_integer:
            return compared(rebuilt(x, lambda e: simplify(e, ranges)), ranges)
        case Binary(op="+" | "-" | "*" | "//" | "%") if x.dtype.is_integer:
            return summed(formed(x, ranges), x)
        case _:
            return rebuilt(x, lambda e: simplify(e, ranges))


def formed(x: Expr, ranges: Ranges) -> Linear:
    """The sum that an integer expression is, with ``//`` and ``%`` of sums resolved as far as ranges allow."""
    match x:
        case Const():
            return Linear(int(x.value)) if x.value else NOTHING
        case Var():
            return Linear(0, {x: 1})
        case Binary(op="+" | "-") if unbounded(x):
            return formed(x.a, ranges).plus(formed(x.b, ranges), 1 if x.op == "+" else -1)
        case Binary(op="*") if unbounded(x):
            a, b = formed(x.a, ranges), formed(x.b, ranges)
            if not a.terms:
                return b.times(a.constant)
            if not b.terms:
                return a.times(b.constant)
            whole = Binary("*", summed(a, x), summed(b, x))
            narrow = any(t.dtype != x.dtype for f in (a, b) for t in f.terms)  # their product could wrap
            return Linear(0, {whole: 1}) if narrow else product(a, b, whole)
        case Binary(op="//" | "%", b=Const(value=by)) if by > 0:
            parts = quotient if x.op == "//" else remainder
            return parts(formed(x.a, ranges), int(by), ranges, x)
        case Unary(op="-") if unbounded(x):
            return formed(x.value, ranges).times(-1)
        case Cast() if x.dtype.holds(x.value.dtype) and x.value.dtype.is_integer:
            return formed(x.value, ranges)
        case _:
            inner = rebuilt(x, lambda e: simplify(e, ranges))
            return Linear(int(inner.value)) if isinstance(inner, Const) else Linear(0, {inner: 1})


def summed(form: Linear, like: Expr) -> Expr:
    """A linear form as an expression of the type of ``like``; terms in the order they came."""
    type = like.dtype
    out: Expr | None = None
    for term, factor in form.terms.items():
        part = term if term.dtype == type else Cast(term, type)
        if factor != 1:
            part = Binary("*", part, const(factor, type))
        out = part if out is None else Binary("+", out, part)
    if out is None:
        return const(form.constant, type)
    if not form.constant:
        return out
    op, constant = ("+", form.constant) if form.constant > 0 else ("-", -form.constant)
    return binary(op, out, constant)


def span_of(form: Linear, ranges: Ranges) -> Interval:
    """Bounds of a sum."""
    low: int | None = form.constant
    high: int | None = form.constant
    for term, factor in form.terms.items():
        at = ranges(term) if isinstance(term, Var) else interval(term, ranges)
        least, most = (at.low, at.high) if factor > 0 else (at.high, at.low)
        low = None if low is None or least is None else low + factor * least
        high = None if high is None or most is None else high + factor * most
        if low is None and high is None:
            break
    return Interval(low, high)


def _parted(form: Linear, by: int) -> tuple[Linear, Linear]:
    """(q, r) with ``form == q * by + r``; no factor in r is a multiple of ``by``, its constant is in 0 to by - 1."""
    whole = {t: n // by for t, n in form.terms.items() if n % by == 0}
    rest = {t: n for t, n in form.terms.items() if n % by}
    return Linear(form.constant // by, whole), Linear(form.constant % by, rest)


def _inside(form: Linear, by: int, ranges: Ranges) -> bool:
    """Whether ``0 <= form < by``."""
    if not form.terms:
        return 0 <= form.constant < by
    match span_of(form, ranges):
        case Interval(int(low), int(high)):
            return low >= 0 and high < by
        case _:
            return False


def quotient(form: Linear, by: int, ranges: Ranges, like: Expr) -> Linear:
    """``form // by``: terms that are multiples go out, the rest stays if it may reach ``by``."""
    if by == 1:
        return form
    out, rest = _parted(form, by)
    if _inside(rest, by, ranges):
        return out
    # (a * g + small) // (b * g) is a // b when 0 <= small < g
    for g in sorted({abs(n) for n in rest.terms.values() if by % n == 0 and abs(n) > 1}, reverse=True):
        large, small = _parted(rest, g)
        if _inside(small, g, ranges):
            return out.plus(quotient(large, by // g, ranges, like))
    return out.plus(Linear(0, {Binary("//", summed(rest, like), const(by, like.dtype)): 1}))


def remainder(form: Linear, by: int, ranges: Ranges, like: Expr) -> Linear:
    """``form % by``: terms that are multiples go out."""
    _, rest = _parted(form, by)
    if _inside(rest, by, ranges):
        return rest
    # (a * g + small) % (b * g) is (a % b) * g + small when 0 <= small < g
    for g in sorted({abs(n) for n in rest.terms.values() if by % n == 0 and abs(n) > 1}, reverse=True):
        large, small = _parted(rest, g)
        if small.terms and _inside(small, g, ranges):
            return remainder(large, by // g, ranges, like).times(g).plus(small)
    return Linear(0, {Binary("%", summed(rest, like), const(by, like.dtype)): 1})


def compared(x: Expr, ranges: Ranges) -> Expr:
    """A comparison as true or false where ranges tell."""
    if not isinstance(x, Binary):
        return x
    at = span_of(formed(x.a, ranges).plus(formed(x.b, ranges), -1), ranges)
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
