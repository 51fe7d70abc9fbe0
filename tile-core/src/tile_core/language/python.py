"""What Python's operators and builtin functions mean between values of a kernel."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..dtypes import DType
from ..errors import KernelError, did_you_mean
from ..expr import Expr, binary, cast, expr, truth
from ..expr import call as intrinsic
from ..expr.make import unary
from ..program import Breakpoint, Print, Region
from .scopes import Scopes
from .tiles import Tile, View, whole

builtins_function = type(len)


def symbolic(value: Any) -> bool:
    return isinstance(value, (Expr, Tile, View))


def _folded(op: str) -> Callable[..., Any]:
    def fold(_: Scopes, *values: Any) -> Any:
        items = list(values[0]) if len(values) == 1 else list(values)
        out = items[0]
        for v in items[1:]:
            out = binary(op, out, v)
        return out

    return fold


def print_(b: Scopes, *values: Any, **__: Any) -> None:
    """``print`` in a kernel prints one line when the kernel runs: its texts, then its values."""
    message = " ".join(v for v in values if isinstance(v, str))
    b.emit(Print(message, tuple(printed(b, v) for v in values if not isinstance(v, str))))


def printed(b: Scopes, value: Any) -> Expr | Region:
    """What a print statement holds for a value: a region for a tile, an expression for a scalar."""
    match value:
        case Tile() if value.ndim:
            return whole(value.buffer, b.span())
        case View():
            return value.region
        case _:
            return expr(value)


def breakpoint_(b: Scopes) -> None:
    b.emit(Breakpoint(span=b.span()))


def pow_(_: Scopes, x: Any, y: Any) -> Expr:
    return intrinsic("pow", x, y)


OF_ONE: dict[Any, Callable[[Scopes, Any], Expr]] = {
    builtins.abs: lambda _, x: intrinsic("abs", x),
    builtins.round: lambda _, x: intrinsic("round", x),
    builtins.int: lambda _, x: cast(x, "int32"),
    builtins.float: lambda _, x: cast(x, "float32"),
    builtins.bool: lambda _, x: truth(x),
}

BUILTINS: dict[Any, Callable[..., Any]] = {
    **OF_ONE,
    builtins.min: _folded("min"),
    builtins.max: _folded("max"),
    builtins.pow: pow_,
    builtins.print: print_,
    builtins.breakpoint: breakpoint_,
}

ALWAYS = frozenset((builtins.print, builtins.breakpoint))

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "**": lambda a, b: a**b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "@": lambda a, b: a @ b,
}

PYTHON_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "is": lambda a, b: a is b,
    "is not": lambda a, b: a is not b,
    "in": lambda a, b: a in b,
    "not in": lambda a, b: a not in b,
}


def _member(a: Any, values: Iterable[Any]) -> Any:
    """``a in values`` for a value of the device: equal to one of them."""
    out: Any = False
    for v in values:
        part = compared("==", a, v)
        if isinstance(part, bool) and part:
            return True
        if not isinstance(part, bool):
            out = part if out is False else binary("or", out, part)
    return out


def compared(op: str, a: Any, b: Any) -> Any:
    if op in ("in", "not in") and isinstance(b, (list, tuple, set, frozenset, range, dict)):
        items: list[Any] = [*b]
        if symbolic(a) or any(symbolic(v) for v in items):
            found = _member(a, items)
            return found if op == "in" else not found if isinstance(found, bool) else unary("not", found)
    scalar = op not in ("is", "is not", "in", "not in")
    if (
        scalar
        and (symbolic(a) or symbolic(b))
        and not isinstance(a, (str, DType))
        and not isinstance(b, (str, DType))
    ):
        if a is None or b is None:
            return op == "!="
        return binary(op, a, b)
    return PYTHON_COMPARISONS[op](a, b)


def check_signature(
    function: Callable[..., Any], arguments: Sequence[Any], keywords: Iterable[str], error: TypeError
) -> None:
    """If a function of the language was called with the wrong arguments, say so in the language's words."""
    if not str(getattr(function, "__module__", "")).startswith("tile_core."):
        return
    signature = inspect.signature(function)
    try:
        signature.bind(*arguments, **dict.fromkeys(keywords))
    except TypeError as wrong:
        name = getattr(function, "__name__", str(function))
        unknown = [k for k in keywords if k not in signature.parameters]
        hint = did_you_mean(unknown[0], signature.parameters) if unknown else ""
        raise KernelError(f"{name}: {wrong}", help=hint or f"its signature is {name}{signature}") from error
