"""Integer expressions as sums: what can be said about an index without running anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .nodes import Binary, Cast, Const, Expr, Unary


@dataclass(frozen=True, slots=True)
class Linear:
    """``constant + sum(factor * term)``. Terms are expressions that are not sums or multiples themselves."""

    constant: int = 0
    terms: Mapping[Expr, int] = field(default_factory=dict[Expr, int])

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """This sum and ``factor`` times the other."""
        constant = self.constant + factor * other.constant
        if not other.terms:
            return Linear(constant, self.terms)
        sums = dict(self.terms)
        for term, times in other.terms.items():
            total = sums.get(term, 0) + factor * times
            if total:
                sums[term] = total
            else:
                sums.pop(term, None)
        return Linear(constant, sums)

    def times(self, factor: int) -> Linear:
        if factor == 0:
            return NOTHING
        return Linear(self.constant * factor, {t: n * factor for t, n in self.terms.items()})


NOTHING = Linear()


def linear(x: Expr | int) -> Linear:
    """The linear form of an integer expression, as if integers of 32 and 64 bits had no width."""
    match x:
        case int():
            return Linear(x)
        case Const() if x.dtype.is_integer:
            return Linear(int(x.value))
        case Binary(op="+" | "-") if unbounded(x):
            return linear(x.a).plus(linear(x.b), 1 if x.op == "+" else -1)
        case Binary(op="*") if unbounded(x):
            a, b = linear(x.a), linear(x.b)
            if not a.terms or not b.terms:
                return b.times(a.constant) if not a.terms else a.times(b.constant)
            return product(a, b, x)
        case Unary(op="-") if unbounded(x):
            return linear(x.value).times(-1)
        case Cast() if x.dtype.holds(x.value.dtype):
            return linear(x.value)
        case _:
            return Linear(0, {x: 1})


def unbounded(x: Expr) -> bool:
    """Whether sums of this type are taken not to wrap; those of narrower and unsigned types are meant to."""
    return x.dtype.kind == "int" and x.dtype.bits >= 32


def product(a: Linear, b: Linear, x: Binary) -> Linear:
    """(i + 1) * n distributes, so that ``(i + 1) * n - i * n`` is n."""
    if len(a.terms) + len(b.terms) > 6:
        return Linear(0, {x: 1})
    out = Linear(a.constant * b.constant)
    out = out.plus(Linear(0, a.terms), b.constant).plus(Linear(0, b.terms), a.constant)
    for s, m in a.terms.items():
        for t, n in b.terms.items():
            low, high = sorted((s, t), key=repr)
            out = out.plus(Linear(0, {Binary("*", low, high): 1}), m * n)
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


def same_shape(a: Sequence[Expr | int], b: Sequence[Expr | int]) -> bool:
    """Whether both have as many extents, and each pair is the same."""
    return len(a) == len(b) and all(map(same, a, b))
