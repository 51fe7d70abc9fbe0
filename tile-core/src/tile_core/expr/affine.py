"""Linear forms and intervals of integer expressions: what can be said about an index without running anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .nodes import Binary, Cast, Const, Expr, Unary, Var


@dataclass(frozen=True)
class Linear:
    """``constant + sum(factor * term)``. Terms are expressions that are not sums or multiples themselves."""

    constant: int
    terms: tuple[tuple[Expr, int], ...] = ()

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        sums = dict(self.terms)
        for term, times in other.terms:
            sums[term] = sums.get(term, 0) + factor * times
        kept = tuple((t, n) for t, n in sums.items() if n)
        return Linear(self.constant + factor * other.constant, kept)

    def times(self, factor: int) -> Linear:
        return Linear(self.constant * factor, tuple((t, n * factor) for t, n in self.terms if factor))


def linear(x: Expr | int) -> Linear:
    """The linear form of an integer expression, as if integers had no width."""
    match x:
        case int():
            return Linear(x)
        case Const() if x.dtype.is_integer:
            return Linear(int(x.value))
        case Binary(op="+" | "-") if x.dtype.is_integer:
            return linear(x.a).plus(linear(x.b), 1 if x.op == "+" else -1)
        case Binary(op="*") if x.dtype.is_integer:
            a, b = linear(x.a), linear(x.b)
            if not a.terms or not b.terms:
                return b.times(a.constant) if not a.terms else a.times(b.constant)
            return _product(a, b, x)
        case Unary(op="-") if x.dtype.is_integer:
            return linear(x.value).times(-1)
        case Cast() if x.dtype.is_integer and x.value.dtype.is_integer and x.dtype.bits >= x.value.dtype.bits:
            return linear(x.value)
        case _:
            return Linear(0, ((x, 1),))


def _product(a: Linear, b: Linear, x: Binary) -> Linear:
    """(i + 1) * n distributes, so that ``(i + 1) * n - i * n`` is n."""
    if len(a.terms) + len(b.terms) > 6:
        return Linear(0, ((x, 1),))
    out = Linear(a.constant * b.constant)
    out = out.plus(Linear(0, a.terms).times(b.constant)).plus(Linear(0, b.terms).times(a.constant))
    for s, m in a.terms:
        for t, n in b.terms:
            low, high = sorted((s, t), key=repr)
            out = out.plus(Linear(0, ((Binary("*", low, high), m * n),)))
    return out


def difference(a: Expr | int, b: Expr | int) -> int | None:
    """``a - b`` if that is a known number, else None."""
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    out = linear(a).plus(linear(b), -1)
    return None if out.terms else out.constant


def same(a: Expr | int, b: Expr | int) -> bool:
    """Whether both are always equal, as far as linear forms tell."""
    return difference(a, b) == 0


Interval = tuple[float, float]


def bounds(x: Expr | int, known: Mapping[Var, Interval]) -> Interval:
    """Least and greatest value of an integer expression when each variable stays in its interval.

    Unknown variables give infinities. The result always holds; it need not be tight.
    """
    match x:
        case int():
            return x, x
        case Const():
            return x.value, x.value
        case Var():
            return known.get(x, (-INFINITY, INFINITY))
        case Binary(op="+" | "-" | "*") if x.dtype.is_integer:
            form = linear(x)
            low = high = float(form.constant)
            for term, factor in form.terms:
                a, b = _product_bounds(term, known) if term == x else bounds(term, known)
                a, b = _scaled(a, factor), _scaled(b, factor)
                low, high = low + min(a, b), high + max(a, b)
            return low, high
        case Binary(op="//" | "%" | "min" | "max"):
            return _combined(x.op, bounds(x.a, known), bounds(x.b, known))
        case Cast() if x.dtype.is_integer and x.value.dtype.is_integer and x.dtype.bits >= x.value.dtype.bits:
            return bounds(x.value, known)
        case _:
            return -INFINITY, INFINITY


INFINITY = float("inf")


def _scaled(a: float, factor: float) -> float:
    return 0.0 if a == 0 or factor == 0 else a * factor


def _product_bounds(x: Expr, known: Mapping[Var, Interval]) -> Interval:
    if not isinstance(x, Binary) or x.op != "*":
        return -INFINITY, INFINITY
    corners = [_scaled(a, b) for a in bounds(x.a, known) for b in bounds(x.b, known)]
    return min(corners), max(corners)


def _combined(op: str, a: Interval, b: Interval) -> Interval:
    if op == "min":
        return min(a[0], b[0]), min(a[1], b[1])
    if op == "max":
        return max(a[0], b[0]), max(a[1], b[1])
    if b[0] <= 0:
        return -INFINITY, INFINITY
    if op == "//":
        corners = [_floor(p, q) for p in a for q in b]
        return min(corners), max(corners)
    if a[0] >= 0 and a[1] < b[0]:
        return a
    return 0, b[1] - 1


def _floor(p: float, q: float) -> float:
    if q in (INFINITY, -INFINITY):
        return 0.0 if p >= 0 else -1.0
    return p if p in (INFINITY, -INFINITY) else p // q
