"""Walk and rewrite expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from . import make
from .nodes import Binary, Bitcast, Buffer, Call, Cast, Const, Expr, Load, Select, Unary, Var


def children(x: Expr) -> tuple[Expr, ...]:
    match x:
        case Const() | Var():
            return ()
        case Binary():
            return (x.a, x.b)
        case Load():
            return x.indices
        case Unary() | Cast() | Bitcast():
            return (x.value,)
        case Call():
            return x.arguments
        case Select():
            return (x.condition, x.then, x.other)
        case _:
            raise TypeError(type(x).__name__)


def walk(x: Expr) -> Iterator[Expr]:
    """``x`` and everything in it, outermost first."""
    stack = [x]
    while stack:
        at = stack.pop()
        yield at
        stack.extend(reversed(children(at)))


def variables(x: Expr) -> Iterator[Var]:
    return (e for e in walk(x) if isinstance(e, Var))


def loads(x: Expr) -> Iterator[Load]:
    return (e for e in walk(x) if isinstance(e, Load))


def reads(x: Expr) -> bool:
    """Whether the value of ``x`` depends on memory."""
    return any(True for _ in loads(x))


def rebuilt(
    x: Expr, change: Callable[[Expr], Expr], on_buffer: Callable[[Buffer], Buffer] | None = None
) -> Expr:
    """``x`` with ``change`` applied to its direct children; constants fold again."""
    match x:
        case Const() | Var():
            return x
        case Binary():
            a, b = change(x.a), change(x.b)
            return x if a is x.a and b is x.b else _spanned(make.binary(x.op, a, b), x)
        case Unary():
            v = change(x.value)
            return x if v is x.value else _spanned(make.unary(x.op, v), x)
        case Cast():
            v = change(x.value)
            return x if v is x.value else _spanned(make.cast(v, x.type), x)
        case Bitcast():
            v = change(x.value)
            return x if v is x.value else replace(x, value=v)
        case Call():
            return replace(x, arguments=tuple(change(a) for a in x.arguments))
        case Select():
            return make.select(change(x.condition), change(x.then), change(x.other), lazy=x.lazy)
        case Load():
            buffer = on_buffer(x.buffer) if on_buffer else x.buffer
            return replace(x, buffer=buffer, indices=tuple(change(i) for i in x.indices))
        case _:
            raise TypeError(type(x).__name__)


def _spanned(x: Expr, like: Expr) -> Expr:
    return x if x.span is not None or like.span is None else replace(x, span=like.span)


def substitute(
    x: Expr, values: Mapping[Var, Expr], on_buffer: Callable[[Buffer], Buffer] | None = None
) -> Expr:
    """``x`` with variables replaced by values, and buffers by ``on_buffer``."""
    if isinstance(x, Var):
        return values.get(x, x)
    return rebuilt(x, lambda e: substitute(e, values, on_buffer), on_buffer)
