"""What the assumptions of a program say of its variables: takes statements, gives numbers that divide them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import lcm

from ..expr import Binary, Const, Expr, Var
from .nodes import Assume, Launch, Stmt


def divisors(body: Iterable[Stmt]) -> dict[Var, int]:
    """Numbers that divide variables by an assumption ``v % n == 0`` of the program, or of a launch, outside any branch or loop."""
    out: dict[Var, int] = {}
    for s in body:
        match s:
            case Assume():
                found = dict(divided(s.condition))
            case Launch():
                found = divisors(s.body)
            case _:
                continue
        for v, n in found.items():
            out[v] = lcm(out.get(v, 1), n)
    return out


def divided(condition: Expr) -> Iterator[tuple[Var, int]]:
    """(variable, divisor) that a condition states."""
    match condition:
        case Binary(op="and"):
            yield from divided(condition.a)
            yield from divided(condition.b)
        case Binary(op="==", a=Binary(op="%", a=Var() as v, b=Const(value=int(n))), b=Const(value=0)) if (
            n > 0
        ):
            yield v, n
        case _:
            return
