"""Operators and scalar functions on held values, by tables."""

from __future__ import annotations

from collections.abc import Callable

from .. import _tvm as tvm
from ..dtypes import DType
from ..errors import InternalError
from .nodes import Node
from .numbers import held, narrow_integer, rounded, zero

PLAIN: dict[str, Callable[[Node, Node], Node]] = {
    "+": tvm.Add,
    "-": tvm.Sub,
    "*": tvm.Mul,
    "/": tvm.Div,
    "&": tvm.BitwiseAnd,
    "|": tvm.BitwiseOr,
    "^": tvm.BitwiseXor,
}

COMPARE: dict[str, Callable[[Node, Node], Node]] = {
    "<": tvm.LT,
    "<=": tvm.LE,
    ">": tvm.GT,
    ">=": tvm.GE,
    "==": tvm.EQ,
    "!=": tvm.NE,
}

BOOLEAN: dict[str, Callable[[Node, Node], Node]] = {
    "and": tvm.And,
    "or": tvm.Or,
    "&": tvm.And,
    "|": tvm.Or,
    "max": tvm.Or,
    "min": tvm.And,
    "+": tvm.Or,
    "*": tvm.And,
}


def binary(op: str, a: Node, b: Node, t: DType) -> Node:
    """``a op b`` of two held values of type ``t``."""
    if t.is_bool:
        return _boolean(op, a, b)
    if op == "!=" and t.is_float:
        return tvm.Not(tvm.EQ(a, b))  # TVM's NE is false for NaN
    if op in COMPARE:
        return COMPARE[op](a, b)
    if op in PLAIN:
        return rounded(PLAIN[op](a, b), t)
    if op in ("<<", ">>"):
        return rounded(_shift(op, a, b, t), t)
    if op in ("min", "max"):
        if t.is_float:
            return tvm.call_pure(held(t), f"tile.{op}.{held(t)}", a, b)
        return tvm.Min(a, b) if op == "min" else tvm.Max(a, b)
    if op in DIVISIONS:
        if t.is_float:
            return rounded(tvm.call_pure(held(t), f"tile.{DIVISIONS[op]}.{held(t)}", a, b), t)
        return rounded(_divide(op, a, b, t), t)
    raise InternalError(f"no lowering of operator {op!r}")


DIVISIONS = {"//": "floordiv", "%": "floormod", "truncdiv": "truncdiv", "truncmod": "truncmod"}


def _boolean(op: str, a: Node, b: Node) -> Node:
    if op in BOOLEAN:
        return BOOLEAN[op](a, b)
    x, y = tvm.Cast("int8", a), tvm.Cast("int8", b)
    if op == "^":
        return tvm.NE(x, y)
    if op in COMPARE:
        return COMPARE[op](x, y)
    raise InternalError(f"no lowering of operator {op!r} on bool")


def _shift(op: str, a: Node, b: Node, t: DType) -> Node:
    """A shift by the width or more gives what shifting one by one would; LLVM leaves it undefined."""
    node = tvm.LShift if op == "<<" else tvm.RShift
    bits = tvm.tirx.IntImm(held(t), max(8, t.bits))
    if type(b) is tvm.IntImm and 0 <= int(b.value) < int(bits.value):
        return node(a, b)
    last = tvm.IntImm(held(t), int(bits.value) - 1)
    inside = tvm.And(tvm.GE(b, zero(t)), tvm.LT(b, bits)) if t.kind == "int" else tvm.LT(b, bits)
    beyond = tvm.RShift(a, last) if op == ">>" and t.kind == "int" else zero(t)
    return tvm.Select(inside, node(a, tvm.BitwiseAnd(b, last)), beyond)


def _divide(op: str, a: Node, b: Node, t: DType) -> Node:
    """Integer division. By zero gives 0; the least number by -1 wraps. Both would stop the process on x86."""
    signed = t.kind == "int"
    one, nought = tvm.IntImm(held(t), 1), zero(t)
    literal = int(b.value) if type(b) is tvm.IntImm else None
    safe, valid = b, None
    if literal is None or (signed and literal == -1):
        bad = tvm.EQ(b, nought)
        if signed:
            bad = tvm.Or(bad, tvm.EQ(b, tvm.IntImm(held(t), -1)))
        safe, valid = tvm.Select(bad, one, b), tvm.NE(b, nought)
    quotient, remainder = tvm.Div(a, safe), tvm.Mod(a, safe)
    if op in ("//", "%") and signed:
        differ = (
            tvm.LT(remainder, nought) if literal and literal > 0 else _signs_differ(remainder, safe, nought)
        )
        quotient = tvm.Select(differ, tvm.Sub(quotient, one), quotient)
        remainder = tvm.Select(differ, tvm.Add(remainder, safe), remainder)
    if op in ("%", "truncmod"):
        return remainder  # a % 1 is 0, which is right for 0 (by rule) and for -1
    if valid is None:
        return quotient
    if signed:
        quotient = tvm.Select(tvm.EQ(b, tvm.IntImm(held(t), -1)), tvm.Sub(nought, a), quotient)
    return tvm.Select(valid, quotient, nought)


def _signs_differ(remainder: Node, divisor: Node, nought: Node) -> Node:
    opposite = tvm.LT(tvm.BitwiseXor(remainder, divisor), nought)
    return tvm.And(tvm.NE(remainder, nought), opposite)


def negative(value: Node, t: DType) -> Node:
    if t.is_float:
        return tvm.Sub(tvm.FloatImm(held(t), -0.0), value)  # also right for zeros
    # not 0 - x: TVM refuses a constant that would make an unsigned number negative
    return rounded(tvm.Add(tvm.BitwiseNot(value), tvm.IntImm(held(t), 1)), t)


def inverted(value: Node, t: DType) -> Node:
    return rounded(tvm.BitwiseNot(value), t)


OPERATORS = {"ieee_add": "+", "ieee_sub": "-", "ieee_mul": "*", "ieee_div": "/"}
RENAMED = {"ieee_sqrt": "sqrt", "ieee_rcp": "rcp"}
TESTS = ("isnan", "isinf", "isfinite")


def function(name: str, arguments: list[Node], t: DType) -> Node:
    """A scalar function of ``INTRINSICS`` on held values of type ``t``."""
    name = RENAMED.get(name, name.removeprefix("__"))
    if name == "ieee_rsqrt":
        # float64 leaves one rounding: no float32 lies near enough to a tie (all of them were tried)
        wide = tvm.call_pure("float64", "tile.rsqrt.float64", tvm.Cast("float64", arguments[0]))
        return rounded(tvm.Cast(held(t), wide), t)
    if name in OPERATORS:
        return binary(OPERATORS[name], arguments[0], arguments[1], t)
    if name in TESTS:
        return tvm.call_pure("bool", f"tile.{name}.{held(t)}", *arguments)
    if narrow_integer(t) and name in ("popcount", "clz"):
        return _count(name, arguments[0], t)
    if name == "abs" and t.kind == "uint":
        return arguments[0]
    if name == "fma" and not t.is_float:
        return binary("+", binary("*", arguments[0], arguments[1], t), arguments[2], t)
    return rounded(tvm.call_pure(held(t), f"tile.{name}.{held(t)}", *arguments), t)


def _count(name: str, value: Node, t: DType) -> Node:
    used = tvm.BitwiseAnd(value, tvm.IntImm(held(t), (1 << t.bits) - 1))
    found = tvm.call_pure(held(t), f"tile.{name}.{held(t)}", used)
    return found if name == "popcount" else tvm.Sub(found, tvm.IntImm(held(t), 8 - t.bits))
