"""Ranges of integer expressions: takes the range of each variable, gives bounds as numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..dtypes import DType
from .nodes import Binary, Cast, Const, Expr, Select, Unary, Var

Bound = int | None  # None: no bound is known


@dataclass(frozen=True, slots=True)
class Interval:
    """``low <= x <= high``."""

    low: Bound = None
    high: Bound = None


Ranges = Callable[[Var], Interval]


def interval(x: Expr, of: Ranges) -> Interval:
    """Bounds of ``x``. What may leave the range of its type wraps, and can then be anything in it."""
    found = _unwrapped(x, of)
    if not x.dtype.is_integer:
        return found
    if None in (found.low, found.high):
        return found if x.dtype.bits >= 32 else _all_of(x.dtype)
    return found if found.low in x.dtype.integers and found.high in x.dtype.integers else _all_of(x.dtype)


def _all_of(type: DType) -> Interval:
    return Interval(type.integers[0], type.integers[-1])


def _unwrapped(x: Expr, of: Ranges) -> Interval:
    """Bounds as if integers had no width."""
    match x:
        case Const():
            return Interval(int(x.value), int(x.value))
        case Var():
            return of(x)
        case Cast() if x.value.dtype.is_integer:
            return interval(x.value, of)
        case Unary(op="-"):
            a = interval(x.value, of)
            return Interval(_neg(a.high), _neg(a.low))
        case Select():
            a, b = interval(x.then, of), interval(x.other, of)
            return Interval(_least(a.low, b.low), _most(a.high, b.high))
        case Binary():
            return _binary(x.op, interval(x.a, of), interval(x.b, of))
        case _:
            return Interval()


def _binary(op: str, a: Interval, b: Interval) -> Interval:
    match op:
        case "+":
            return Interval(_sum(a.low, b.low), _sum(a.high, b.high))
        case "-":
            return Interval(_sum(a.low, _neg(b.high)), _sum(a.high, _neg(b.low)))
        case "*":
            return _product(a, b)
        case "min":
            high = [h for h in (a.high, b.high) if h is not None]
            return Interval(_least(a.low, b.low), min(high, default=None))
        case "max":
            low = [v for v in (a.low, b.low) if v is not None]
            return Interval(max(low, default=None), _most(a.high, b.high))
        case "//" | ">>" | "truncdiv" if b.low is not None and b.low == b.high:
            by = 1 << b.low if op == ">>" else b.low
            signed = op == "truncdiv" and (a.low is None or a.low < 0)
            return Interval() if by <= 0 or signed else Interval(_over(a.low, by), _over(a.high, by))
        case "%" | "truncmod" if b.high is not None and b.low is not None and b.low > 0:
            inside = a.low is not None and a.low >= 0 and a.high is not None and a.high < b.low
            if op == "truncmod" and (a.low is None or a.low < 0):
                return Interval(1 - b.high, b.high - 1)
            return a if inside else Interval(0, b.high - 1)
        case "&" if b.low is not None and b.low == b.high and b.low >= 0:
            return Interval(0, b.low)
        case _:
            return Interval()


def _product(a: Interval, b: Interval) -> Interval:
    match a, b:
        case Interval(int(x), int(y)), Interval(int(z), int(w)):
            corners = (x * z, x * w, y * z, y * w)
            return Interval(min(corners), max(corners))
        case Interval(int(x)), Interval(int(z)) if x >= 0 and z >= 0:
            return Interval(x * z, None)
        case _:
            return Interval()


def _neg(a: Bound) -> Bound:
    return None if a is None else -a


def _sum(a: Bound, b: Bound) -> Bound:
    return None if a is None or b is None else a + b


def _over(a: Bound, by: int) -> Bound:
    return None if a is None else a // by


def _least(a: Bound, b: Bound) -> Bound:
    return None if a is None or b is None else min(a, b)


def _most(a: Bound, b: Bound) -> Bound:
    return None if a is None or b is None else max(a, b)
