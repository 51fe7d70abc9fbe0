"""Loops whose last iterations alone are masked: takes a condition, gives the iteration from which on it holds."""

from __future__ import annotations

from ...expr import Binary, Expr, Var, binary, variables
from ...expr.affine import Linear
from .context import Context

STRICT = {">": True, ">=": False, "<": True, "<=": False}


def holds_from(context: Context, condition: Expr, var: Var) -> Expr | None:
    """The first value of ``var`` for which ``condition`` holds, and with it for all larger ones; None if that is not sure."""
    match condition:
        case Binary(op="or" | "and"):
            a, b = (holds_from(context, x, var) for x in (condition.a, condition.b))
            return None if a is None or b is None else binary("min" if condition.op == "or" else "max", a, b)
        case Binary(op=">" | ">="):
            return _crossing(context, condition.a, condition.b, var, STRICT[condition.op])
        case Binary(op="<" | "<="):
            return _crossing(context, condition.b, condition.a, var, STRICT[condition.op])
        case _:
            return None


def _crossing(context: Context, larger: Expr, smaller: Expr, var: Var, strict: bool) -> Expr | None:
    """From where on ``larger`` is above ``smaller``, or with it if not ``strict``: their difference rises with ``var``."""
    form = context.form(binary("-", larger, smaller))
    slope = form.terms.get(var, 0)
    if slope <= 0:
        return None
    rest = context.sum(form.plus(Linear(0, {var: slope}), -1))
    if any(_mentions(t, var) for t in form.terms if t is not var):
        return None
    least = binary("//", binary("-", rest, int(strict)), slope)
    return context.simple(binary("-", 0, least))


def _mentions(x: Expr, var: Var) -> bool:
    return any(v == var for v in variables(x))
