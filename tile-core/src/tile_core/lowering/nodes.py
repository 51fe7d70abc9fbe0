"""Short constructors of TVM nodes. They never simplify floats, and fold only 64-bit index arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _tvm as tvm

Node = Any  # a TVM expression or statement


def i64(value: int) -> Node:
    return tvm.IntImm("int64", value)


def known(x: Node) -> int | None:
    """The number that an index expression is, or None."""
    return int(x.value) if type(x) is tvm.IntImm else None


def add(a: Node, b: Node) -> Node:
    x, y = known(a), known(b)
    if x is not None and y is not None:
        return i64(x + y)
    if x == 0:
        return b
    return a if y == 0 else tvm.Add(a, b)


def subtract(a: Node, b: Node) -> Node:
    x, y = known(a), known(b)
    if x is not None and y is not None:
        return i64(x - y)
    return a if y == 0 else tvm.Sub(a, b)


def multiply(a: Node, b: Node) -> Node:
    x, y = known(a), known(b)
    if x is not None and y is not None:
        return i64(x * y)
    if x == 0 or y == 0:
        return i64(0)
    if x == 1:
        return b
    return a if y == 1 else tvm.Mul(a, b)


def least(a: Node, b: Node) -> Node:
    x, y = known(a), known(b)
    return i64(min(x, y)) if x is not None and y is not None else tvm.Min(a, b)


def greatest(a: Node, b: Node) -> Node:
    x, y = known(a), known(b)
    return i64(max(x, y)) if x is not None and y is not None else tvm.Max(a, b)


def every(conditions: Sequence[Node]) -> Node | None:
    """The conjunction, or None of nothing."""
    out = None
    for c in conditions:
        out = c if out is None else tvm.And(out, c)
    return out


def sequence(statements: Sequence[Node]) -> Node:
    if not statements:
        return tvm.Evaluate(tvm.IntImm("int32", 0))
    return statements[0] if len(statements) == 1 else tvm.SeqStmt(list(statements))


def when(condition: Node | None, then: Sequence[Node], other: Sequence[Node] = ()) -> list[Node]:
    """``if condition``; no condition means always."""
    if condition is None:
        return list(then)
    return [tvm.IfThenElse(condition, sequence(then), sequence(other) if other else None)]


def loop(var: Node, low: Node, high: Node, body: Sequence[Node]) -> list[Node]:
    """``for var in [low, high)``; a loop of one known iteration becomes its body."""
    if not body:
        return []
    extent = subtract(high, low)
    if known(extent) == 1:
        return [tvm.BindStmt(var, low), *body]
    if (n := known(extent)) is not None and n <= 0:
        return []
    return [tvm.For(var, low, extent, tvm.ForKind.SERIAL, sequence(body))]


def choose(condition: Node, then: Node, other: Node) -> Node:
    """``then if condition else other``; only the chosen side is evaluated."""
    return tvm.tirx.if_then_else(condition, then, other)


def run(name: str, *arguments: Node) -> Node:
    """A call of a function for its effect."""
    return tvm.Evaluate(tvm.call_extern("void", name, *arguments))
