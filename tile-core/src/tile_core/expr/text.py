"""Expressions as the text that a user would write."""

from __future__ import annotations

from collections.abc import Sequence

from .nodes import Binary, Bitcast, Buffer, Call, Cast, Const, Expr, Load, Select, Unary, Var

PRECEDENCE = {
    "or": 1,
    "and": 2,
    "<": 4,
    "<=": 4,
    ">": 4,
    ">=": 4,
    "==": 4,
    "!=": 4,
    "|": 5,
    "^": 6,
    "&": 7,
    "<<": 8,
    ">>": 8,
    "+": 9,
    "-": 9,
    "*": 10,
    "/": 10,
    "//": 10,
    "%": 10,
}


def text(x: Expr | int | float, outer: int = 0) -> str:
    """``x`` in the surface syntax; parentheses only where precedence needs them."""
    match x:
        case int() | float():
            return str(x)
        case Const():
            return str(x.value) if x.dtype.name in ("int32", "float32", "bool") else f"{x.dtype}({x.value})"
        case Var():
            return x.name
        case Unary():
            return f"not {text(x.value, 3)}" if x.op == "not" else f"{x.op}{text(x.value, 11)}"
        case Binary() if x.op in PRECEDENCE:
            level = PRECEDENCE[x.op]
            inner = f"{text(x.a, level)} {x.op} {text(x.b, level + 1)}"
            return f"({inner})" if level < outer else inner
        case Binary():
            return f"{x.op}({text(x.a)}, {text(x.b)})"
        case Select():
            inner = f"{text(x.then, 1)} if {text(x.condition, 1)} else {text(x.other)}"
            return f"({inner})" if outer else inner
        case Cast():
            return f"{x.type}({text(x.value)})"
        case Bitcast():
            return f"reinterpret({text(x.value)}, {x.type})"
        case Call():
            return f"{x.function}({', '.join(text(a) for a in x.arguments)})"
        case Load():
            return element_text(x.buffer, x.indices)
        case _:
            raise TypeError(type(x).__name__)


def index_text(indices: Sequence[Expr | int]) -> str:
    return ", ".join(text(i) for i in indices)


def element_text(buffer: Buffer, indices: Sequence[Expr]) -> str:
    return f"{buffer.name}[{index_text(indices)}]" if indices else buffer.name


def shape_text(shape: Sequence[Expr | int]) -> str:
    """As Python shows a tuple."""
    return f"({index_text(shape)}{',' if len(shape) == 1 else ''})"
