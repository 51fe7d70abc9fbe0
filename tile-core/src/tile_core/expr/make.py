"""Constructors of expressions: they convert operands to one type and fold constants."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..dtypes import BOOL, FLOAT32, INT32, INT64, DType, dtype, promote
from ..errors import KernelError
from .intrinsics import INTRINSICS
from .nodes import (
    BITWISE,
    COMPARISONS,
    LOGICAL,
    Binary,
    Bitcast,
    Buffer,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    Select,
    Unary,
)
from .text import shape_text


def no_truth(value: Expr) -> KernelError:
    return KernelError(
        "the truth of a value that is only known when the kernel runs was asked for",
        value.span,
        why="Python code around a kernel runs once, while the kernel is built",
        help="use `if`, `while`, `and`, `or`, `not` in the kernel itself (not in a plain helper: mark it @T.macro)",
    )


def no_number(value: Expr) -> KernelError:
    return KernelError(
        "a number known while the kernel is built is needed here, not a value computed when it runs",
        value.span,
    )


def const(value: Any, type: DType | str | None = None) -> Const:
    """A literal. Without a type: bool, int32 (int64 if it does not fit) or float32."""
    value = _number(value)
    if type is None:
        if isinstance(value, bool):
            return Const(value, BOOL)
        if isinstance(value, int):
            return Const(value, INT32 if -(2**31) <= value < 2**31 else INT64)
        return Const(float(value), FLOAT32)
    to = dtype(type)
    if to.is_float:
        return Const(float(value), to)
    if to.is_bool:
        return Const(bool(value), to)
    if isinstance(value, float) and not math.isfinite(value):
        raise KernelError(f"{value} has no value in {to}")
    return Const(wrapped(int(value), to), to)


def _number(value: Any) -> Any:
    """A number of Python, also from a scalar of numpy or torch."""
    if hasattr(value, "item"):
        if getattr(value, "size", 1) != 1 and not callable(value.size):
            raise KernelError(
                f"an array of shape {shape_text(value.shape)} is used where a single value is needed",
                help="pass it to the kernel as a tensor, or index it",
            )
        value = value.item()
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 1023:
        raise KernelError(f"a number of {value.bit_length()} bits fits no type")
    return value


def wrapped(value: int, type: DType) -> int:
    """``value`` modulo 2**bits, in the range of an integer type: what the hardware keeps."""
    value &= (1 << type.bits) - 1
    return value - (1 << type.bits) if type.kind == "int" and value >> (type.bits - 1) else value


def expr(value: Any) -> Expr:
    """A value as an expression: numbers become constants, a scalar cell is read."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, (bool, int, float)) or hasattr(value, "item"):
        return const(value)
    if isinstance(value, Buffer):
        if value.shape == ():
            return Load(value, ())
        raise KernelError(
            f"{value.name} is a {value.space} tile of shape {shape_text(value.shape)}, a single value is needed here",
            help=f"index it: {value.name}[{', '.join('ijklmn'[: value.ndim])}]",
        )
    convert = getattr(value, "as_expr", None)
    if convert is not None:
        return convert()
    raise KernelError(f"{value!r} ({type(value).__name__}) is not a value of a kernel")


def cast(value: Any, to: DType | str) -> Expr:
    """``value`` converted to ``to``; constants are converted at once when that is exact."""
    value, to = expr(value), dtype(to)
    if value.dtype == to:
        return value
    if to.lanes != value.dtype.lanes and value.dtype.lanes != 1:
        raise KernelError(f"{value.dtype} has {value.dtype.lanes} lanes, {to} has {to.lanes}")
    if isinstance(value, Const) and (
        to.is_float or to.is_bool or value.dtype.is_integer or math.isfinite(value.value)
    ):
        if not to.is_float or to.bits >= 32 or value.value in (0, 1, -1, 2, 0.5, math.inf, -math.inf):
            return const(value.value, to)
    return Cast(value, to, span=value.span)


def bitcast(value: Any, to: DType | str) -> Expr:
    value, to = expr(value), dtype(to)
    if value.dtype == to:
        return value
    if value.dtype.bits * value.dtype.lanes != to.bits * to.lanes:
        raise KernelError(f"reinterpret keeps the bits: {value.dtype} and {to} differ in width", value.span)
    return Bitcast(value, to, span=value.span)


def _weak(value: Any) -> bool:
    return isinstance(value, (int, float)) and not hasattr(value, "dtype")


def operands(a: Any, b: Any) -> tuple[Expr, Expr]:
    """Both values in the type they meet in. A Python number takes the type of the other side."""
    if _weak(a) and not _weak(b):
        y = expr(b)
        return _literal(a, y.dtype), _settled(a, y)
    if _weak(b) and not _weak(a):
        x = expr(a)
        return _settled(b, x), _literal(b, x.dtype)
    x, y = expr(a), expr(b)
    to = promote(x.dtype, y.dtype)
    return cast(x, to), cast(y, to)


def _literal(number: Any, beside: DType) -> Expr:
    return const(number, beside) if _fits(number, beside) else const(number)


def _settled(number: Any, value: Expr) -> Expr:
    return value if _fits(number, value.dtype) else cast(value, promote(value.dtype, const(number).dtype))


def _fits(number: Any, type: DType) -> bool:
    if type.is_float:
        return True
    if isinstance(number, float):
        return False
    if type.is_bool:
        return isinstance(number, bool)
    return wrapped(int(number), type) == int(number)


FOLD: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "truncdiv": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "truncmod": lambda a, b: abs(a) % abs(b) * (1 if a >= 0 else -1),
    "min": min,
    "max": max,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "and": lambda a, b: bool(a and b),
    "or": lambda a, b: bool(a or b),
}

DIVISIONS = frozenset(("//", "%", "truncdiv", "truncmod"))


COUNTING = frozenset(
    ("+", "-", "*", "//", "%", "truncdiv", "truncmod")
)  # bools count as 0 and 1, as in Python


def binary(op: str, a: Any, b: Any) -> Expr:
    """``a op b`` after conversion of both sides; integers are folded and neutral elements dropped.

    Raises:
        KernelError: the operation does not exist for the types, or divides by a constant zero.
    """
    if op in LOGICAL:
        x, y = truth(a), truth(b)
    else:
        x, y = operands(a, b)
        _legal(op, x, y)
        if x.dtype.is_bool and op in COUNTING:
            x, y = cast(x, INT32), cast(y, INT32)
        if op == "/" and not x.dtype.is_float:
            x, y = cast(x, FLOAT32), cast(y, FLOAT32)
    exact = x.dtype.is_integer or x.dtype.is_bool
    if exact and isinstance(y, Const) and y.value == 0 and op in DIVISIONS:
        raise KernelError("division by zero", y.span or x.span)
    if (
        exact
        and isinstance(x, Const)
        and isinstance(y, Const)
        and op in FOLD
        and not (op in ("<<", ">>") and y.value < 0)
    ):
        value = FOLD[op](x.value, y.value)
        return const(value, BOOL if op in COMPARISONS or op in LOGICAL else x.dtype)
    simpler = _neutral(op, x, y)
    return Binary(op, x, y) if simpler is None else simpler


def _legal(op: str, x: Expr, y: Expr) -> None:
    if op in BITWISE and not (x.dtype.is_integer or (x.dtype.is_bool and op in "&|^")):
        raise KernelError(f"{op} works on integers, not on {x.dtype}", x.span or y.span)


def _neutral(op: str, x: Expr, y: Expr) -> Expr | None:
    """Integer identities only: ``x * 0.0`` is NaN for an infinite x, and must stay."""
    if not (x.dtype.is_integer or x.dtype.is_bool):
        return None
    zero_x, zero_y = _is(x, 0), _is(y, 0)
    if (op in ("+", "|", "^") and zero_x) or (op == "*" and _is(x, 1)):
        return y
    if (op in ("+", "-", "|", "^", "<<", ">>") and zero_y) or (op in ("*", "//", "truncdiv") and _is(y, 1)):
        return x
    if op == "*" and (zero_x or zero_y):
        return const(0, x.dtype)
    if op in ("%", "truncmod") and _is(y, 1):
        return const(0, x.dtype)
    if op in ("and", "or"):
        for known, other in ((x, y), (y, x)):
            if isinstance(known, Const):
                return other if bool(known.value) == (op == "and") else known
    return None


def _is(x: Expr, value: int) -> bool:
    return isinstance(x, Const) and x.value == value and not x.dtype.is_bool


def unary(op: str, value: Any) -> Expr:
    if op == "not":
        x = truth(value)
        return const(not x.value) if isinstance(x, Const) else Unary("not", x)
    x = expr(value)
    if op == "~":
        _legal("&", x, x)
        if x.dtype.is_bool:
            return unary("not", x)
    elif x.dtype.is_bool:
        x = cast(x, INT32)
    if isinstance(x, Const):
        return const(-x.value if op == "-" else ~int(x.value), x.dtype)
    return Unary(op, x)


def truth(value: Any) -> Expr:
    """A value as a condition: numbers are compared with zero."""
    x = expr(value)
    return x if x.dtype.is_bool else binary("!=", x, 0)


def select(condition: Any, then: Any, other: Any, *, lazy: bool = True) -> Expr:
    test = truth(condition)
    x, y = operands(then, other)
    if isinstance(test, Const):
        return x if test.value else y
    return Select(test, x, y, lazy)


def call(name: str, *arguments: Any) -> Expr:
    """A scalar function of the language.

    Raises:
        KernelError: an argument's type does not suit the function.
    """
    rule = INTRINSICS[name]
    values = [expr(a) for a in arguments]
    if rule.arity == 2:
        values = list(operands(*arguments))
    elif rule.arity == 3:
        to = promote(promote(values[0].dtype, values[1].dtype), values[2].dtype)
        values = [cast(v, to) for v in values]
    if rule.takes == "integer" and not values[0].dtype.is_integer:
        raise KernelError(f"{name} works on integers, not on {values[0].dtype}", values[0].span)
    if rule.takes == "float" and not values[0].dtype.is_float:
        values = [cast(v, FLOAT32) for v in values]
    gives = values[0].dtype if rule.gives == "same" else dtype(rule.gives)
    return Call(name, tuple(values), gives)


def minimum(a: Any, b: Any) -> Expr:
    return binary("min", a, b)


def maximum(a: Any, b: Any) -> Expr:
    return binary("max", a, b)


def ceildiv(a: Any, b: Any) -> Any:
    """``ceil(a / b)`` of integers: a number if both are numbers, else an expression."""
    if isinstance(a, int) and isinstance(b, int):
        if b == 0:
            raise KernelError("ceildiv by zero")
        return -(-a // b)
    return binary("//", binary("+", a, binary("-", b, 1)), b)


def dim(value: Any) -> int | Expr:
    """An extent: an int if it is known, else an integer expression."""
    if isinstance(value, bool):
        raise KernelError("an extent is an integer, not a bool")
    if isinstance(value, int):
        return value
    x = expr(value)
    if isinstance(x, Const) and x.dtype.is_integer:
        return int(x.value)
    if not x.dtype.is_integer:
        raise KernelError(f"an extent is an integer, not {x.dtype}", x.span)
    return x
