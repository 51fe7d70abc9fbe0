"""What Python's operators and builtin functions mean between values of a kernel."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..dtypes import DType
from ..errors import KernelError, did_you_mean
from ..expr import Expr, binary, cast, truth
from ..expr import call as intrinsic
from ..program import Breakpoint
from .scopes import Scopes
from .tiles import Tile, View

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


def print_(_: Scopes, *values: Any, **__: Any) -> None:
    """``print`` in a kernel prints when the kernel runs."""
    from .debug import print as device_print

    message = " ".join(v for v in values if isinstance(v, str))
    for v in [v for v in values if not isinstance(v, str)] or [None]:
        device_print(v, message)


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


def compared(op: str, a: Any, b: Any) -> Any:
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
