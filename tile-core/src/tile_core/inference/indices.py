"""Index expressions as sums of loop digits: takes a scalar expression, gives an ``Index`` and what is left to run time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd
from types import MappingProxyType

from ..expr import Binary, Cast, Const, Expr, Unary, Var, variables
from .maps import OPAQUE, Index

Loops = Mapping[Var, Index]
Facts = Mapping[Var, int]
NO_FACTS: Facts = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Place:
    """``index`` plus a value that no loop of the nest changes. ``align``: a divisor of that value; 0 if there is none."""

    index: Index
    align: int = 0

    def __add__(self, other: Place) -> Place:
        return Place(self.index + other.index, gcd(self.align, other.align))


UNKNOWN = Place(OPAQUE)
NOTHING = Index()


def place(x: Expr, loops: Loops, facts: Facts = NO_FACTS) -> Place:
    """Where ``x`` points, for the loops of a nest (variable -> its values as an index). ``facts``: divisors of other variables."""
    match x:
        case Const():
            return Place(Index((), int(x.value)))
        case Var():
            return Place(loops[x]) if x in loops else Place(NOTHING, facts.get(x, 1))
        case Cast() if x.dtype.holds(x.value.dtype):
            return place(x.value, loops, facts)
        case Unary(op="-"):
            return _scaled(place(x.value, loops, facts), -1)
        case Binary(op="+"):
            return place(x.a, loops, facts) + place(x.b, loops, facts)
        case Binary(op="-"):
            return place(x.a, loops, facts) + _scaled(place(x.b, loops, facts), -1)
        case Binary(op="*" | "<<"):
            return _product(x.op, place(x.a, loops, facts), place(x.b, loops, facts))
        case Binary(op="//" | "%" | "truncdiv" | "truncmod" | ">>" | "&"):
            return _divided(x.op, place(x.a, loops, facts), place(x.b, loops, facts))
        case _:
            return UNKNOWN if any(v in loops for v in variables(x)) else Place(NOTHING, 1)


def _number(p: Place) -> int | None:
    return p.index.constant if not p.index.digits and not p.index.opaque and not p.align else None


def _fixed(p: Place) -> bool:
    """No loop changes it."""
    return not p.index.digits and not p.index.opaque


def _scaled(p: Place, factor: int) -> Place:
    if _fixed(p):
        return Place(Index((), p.index.constant * factor), abs(p.align * factor))
    return Place(p.index * factor, abs(p.align * factor))


def _product(op: str, a: Place, b: Place) -> Place:
    x, y = _number(a), _number(b)
    if op == "<<":
        return _scaled(a, 1 << y) if y is not None and y >= 0 else _other(a, b)
    if y is not None:
        return _scaled(a, y)
    if x is not None:
        return _scaled(b, x)
    if _fixed(a) and _fixed(b):
        return Place(NOTHING, gcd(a.align, a.index.constant) * gcd(b.align, b.index.constant))
    return UNKNOWN


def _other(a: Place, b: Place) -> Place:
    return Place(NOTHING, 1) if _fixed(a) and _fixed(b) else UNKNOWN


def _divided(op: str, a: Place, b: Place) -> Place:
    by = _number(b)
    if by is not None and op == ">>":
        op, by = "//", 1 << by
    if by is not None and op == "&":
        op, by = "%", by + 1 if by & (by + 1) == 0 else 0
    if by is None or by <= 0 or a.index.constant < 0:
        return _other(a, b)
    if a.align % by:  # what is left to run time would carry into the digits
        return _other(a, b)
    if op in ("//", "truncdiv"):
        return Place(a.index // by, a.align // by)
    return Place(a.index % by)


def divisor(x: int | Expr, facts: Facts = NO_FACTS) -> int:
    """The largest number that is known to divide ``x``; 0 for zero."""
    if not isinstance(x, Expr):
        return abs(x)
    p = place(x, {}, facts)
    return gcd(p.align, p.index.constant)
