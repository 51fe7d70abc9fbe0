"""Conditions over a run of neighbouring iterations: takes one for a single iteration, says where it holds for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...expr import Binary, Expr, Unary, Var, binary, const, reads, substitute, unary, variables
from ...expr.affine import Linear
from .context import Context

Path = tuple[tuple[Expr, bool], ...]  # conditions on the way to a step, each with the side that leads there

# a < b and a <= b as "a - b + shift < 0"; the other two are opposites of these
SHIFTS = {"<": 0, "<=": -1, ">=": 0, ">": -1}


@dataclass(frozen=True)
class Run:
    """``count`` iterations from ``start`` on, which ``var`` counts."""

    context: Context
    var: Var
    start: Expr
    count: int

    def at(self, x: Expr, step: int) -> Expr:
        """``x`` in one of the iterations."""
        return self.context.simple(substitute(x, {self.var: binary("+", self.start, step)}))

    def everywhere(self, c: Expr, holds: bool = True) -> Expr | None:
        """A condition under which ``c`` is ``holds`` in every iteration; None if none can be told."""
        if not depends(c, self.var):
            return c if holds else unary("not", c)
        match c:
            case Binary(op="and" | "or"):
                a, b = self.everywhere(c.a, holds), self.everywhere(c.b, holds)
                if (c.op == "and") == holds:
                    return None if a is None or b is None else binary("and", a, b)
                return a if b is None else b if a is None else binary("or", a, b)
            case Unary(op="not"):
                return self.everywhere(c.value, not holds)
            case Binary(op="<" | "<=" | ">" | ">=") if c.a.dtype.is_integer:
                slope = self._slope(c)
                if slope is None:
                    return None
                rising = (slope > 0) == (c.op in ("<", "<="))
                worst = self.at(c, self.count - 1 if rising == holds else 0)
                return worst if holds else unary("not", worst)
            case _:
                return None

    def uniform(self, c: Expr) -> bool:
        """Whether ``c`` has one value in all iterations: bounds and starts are multiples of the run's length."""
        if not depends(c, self.var):
            return True
        match c:
            case Binary(op="and" | "or"):
                return self.uniform(c.a) and self.uniform(c.b)
            case Unary(op="not"):
                return self.uniform(c.value)
            case Binary(op="<" | "<=" | ">" | ">=") if c.a.dtype.is_integer:
                return self._aligned(c)
            case _:
                return False

    def _difference(self, c: Binary) -> Linear:
        return self.context.form(c.a).plus(self.context.form(c.b), -1)

    def _slope(self, c: Binary) -> int | None:
        form = self._difference(c)
        if any(term != self.var and depends(term, self.var) for term in form.terms):
            return None
        return form.terms.get(self.var)

    def _aligned(self, c: Binary) -> bool:
        """``c`` is ``e + step < 0`` or its opposite, where ``e`` at the start of the run is a multiple of its length."""
        slope = self._slope(c)
        if slope not in (1, -1):
            return False
        form = self._difference(c).plus(Linear(SHIFTS[c.op]))
        if slope < 0:
            form = form.times(-1).plus(Linear(-1))
        first = form.plus(self.context.form(self.start)).plus(Linear(0, {self.var: 1}), -1)
        return self.context.divisor(first) % self.count == 0


def depends(x: Expr, var: Var) -> bool:
    return any(v == var for v in variables(x))


def holding(path: Path) -> Expr:
    """All conditions of a path together."""
    out: Expr = const(True)
    for c, side in path:
        out = binary("and", out, c if side else unary("not", c))
    return out


def joined(paths: Sequence[Path]) -> Path | None:
    """The path under which any of ``paths`` is taken: one that leads to all the others, or two sides of one test."""
    found: list[Path] = list(dict.fromkeys(paths))
    while len(found) > 1:
        shortest = min(found, key=len)
        if all(p[: len(shortest)] == shortest for p in found):
            return shortest
        longest = max(found, key=len)
        twin = (*longest[:-1], (longest[-1][0], not longest[-1][1]))
        if twin not in found:
            return None
        found = [longest[:-1], *(p for p in found if p not in (longest, twin))]
    return found[0] if found else None


def steady(path: Path) -> bool:
    """Whether the conditions can be asked before the step runs: they read no memory."""
    return not any(reads(c) for c, _ in path)
