"""Comparisons that always hold: takes the range of each variable and what else is known, says whether ``x <= limit``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..expr import Binary, Const, Expr, Var
from ..expr.affine import Linear
from ..expr.intervals import Interval, interval
from ..graph.boxes import steady


@dataclass(frozen=True, slots=True)
class Known:
    """What holds at one place: ``ranges`` of variables as (first, last) expressions, sums that are at most zero, and numbers
    that divide variables.
    """

    ranges: Mapping[Var, tuple[Expr, Expr]] = field(default_factory=dict[Var, "tuple[Expr, Expr]"])
    facts: tuple[Linear, ...] = ()
    divisors: Mapping[Var, int] = field(default_factory=dict[Var, int])

    def having(
        self,
        ranges: Mapping[Var, tuple[Expr, Expr]],
        facts: tuple[Linear, ...] = (),
        divisors: Mapping[Var, int] | None = None,
    ) -> Known:
        return Known({**self.ranges, **ranges}, self.facts + facts, {**self.divisors, **(divisors or {})})

    def of(self, v: Var) -> Interval:
        """The range of a variable as numbers."""
        if v not in self.ranges:
            return Interval()
        first, last = self.ranges[v]
        return Interval(interval(first, self.of).low, interval(last, self.of).high)


def never_above(x: Expr, limit: Expr, known: Known) -> bool:
    """Whether ``x <= limit`` always: by numbers, else by sums in which every variable stands at its far end."""
    high, low = interval(x, known.of).high, interval(limit, known.of).low
    if high is not None and low is not None and high <= low:
        return True
    first, last = steady(x), steady(limit)
    if first is None or last is None:
        return False
    goal = _divided(first.plus(last, -1), known)
    if any(_gap(goal, fact) for fact in known.facts):
        return True
    for _ in range(len(known.ranges)):
        moved = _pushed(goal, known)
        if moved is None:
            break
        goal = _divided(moved, known)
    return (not goal.terms and goal.constant <= 0) or any(_gap(goal, fact) for fact in known.facts)


def _gap(goal: Linear, fact: Linear) -> bool:
    """Whether ``fact <= 0`` gives ``goal <= 0``."""
    return goal.terms == fact.terms and goal.constant <= fact.constant


def _divided(goal: Linear, known: Known) -> Linear:
    """The goal with ``n * (sum // n)`` as a sum where ``n`` divides all of it but a number."""
    for term, factor in goal.terms.items():
        match term:
            case Binary(op="//", a=a, b=Const(value=int(by))) if by > 0 and factor % by == 0:
                form = steady(a)
                if form is None or any(n * known.divisors.get(t, 1) % by for t, n in _variables(form)):
                    continue
                whole = Linear(0, form.terms).times(factor // by).plus(Linear(factor * (form.constant // by)))
                return _divided(goal.plus(Linear(0, {term: 1}), -factor).plus(whole), known)
            case _:
                continue
    return goal


def _variables(form: Linear) -> Iterator[tuple[Var, int]]:
    """Terms with their factors; what is no variable has a name that nothing is known of."""
    for term, n in form.terms.items():
        yield (term if isinstance(term, Var) else Var("", term.dtype, -1)), n


def _pushed(goal: Linear, known: Known) -> Linear | None:
    """The goal with one loop variable replaced by the end of its range that makes it largest."""
    for term, factor in goal.terms.items():
        if isinstance(term, Var) and term in known.ranges:
            first, last = known.ranges[term]
            end = steady(last if factor > 0 else first)
            if end is None:
                continue
            return goal.plus(Linear(0, {term: 1}), -factor).plus(end, factor)
    return None
