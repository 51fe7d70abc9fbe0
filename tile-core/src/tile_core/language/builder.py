"""The builder: a kernel's rewritten Python function calls it, and statements of a tile program come out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..dtypes import DType
from ..errors import KernelError
from ..expr import Expr, Load, binary, cast, select, truth, unary
from ..program import Assert, Fill, Store
from .flow import Flow
from .python import ALWAYS, BUILTINS, OPERATORS, builtins_function, check_signature, compared, symbolic
from .scopes import NOTHING, PARALLEL, current
from .tiles import NoValue, Tile, View, element_or_region


class Builder(Flow):
    """State of one kernel while it is built. Methods that start with a span number are called by rewritten code."""

    NOTHING = NOTHING
    slice = slice

    def getitem(self, k: int, value: Any, index: Any) -> Any:
        if isinstance(value, Tile):
            span = self.span(k)
            with self.at(span):
                return element_or_region(value.buffer, index, span)
        if isinstance(value, View):
            raise KernelError("a region is not indexed again; index the tile itself", self.span(k))
        if isinstance(index, Expr) and isinstance(value, (list, tuple, dict)):
            raise KernelError(
                "a Python container is indexed by a value that is only known when the kernel runs",
                self.span(k),
                help="put the values into a tile, or unroll the loop over Python values: for x in [..]",
            )
        return value[index]

    def store(self, k: int | None, target: Any, index: Any, value: Any) -> None:
        """``target[index] = value``: an element, or a region that is filled or copied to."""
        span = self.span(k)
        if isinstance(target, View):
            raise KernelError("a region is not indexed again; index the tile itself", span)
        if not isinstance(target, Tile):
            target[index] = value
            return
        with self.at(span):
            place = element_or_region(target.buffer, index, span)
            if isinstance(place, Load):
                self.emit(Store(target.buffer, place.indices, cast(value, target.dtype), span=span))
            elif isinstance(value, (Tile, View)) and value.shape:
                from .movement import copy

                copy(value, place)
            else:
                self.no_parallel("a region is assigned")
                self.emit(Fill(place.region, cast(value, target.dtype), span=span))

    def augment(self, k: int, op: str, target: Any, index: Any, value: Any) -> None:
        """``target[index] op= value``."""
        old = self.getitem(k, target, index)
        self.store(k, target, index, OPERATORS[op](old, value))

    def no_parallel(self, what: str) -> None:
        """Raise if a step of the whole block stands where one thread acts for itself."""
        if self.inside(PARALLEL):
            raise KernelError(
                f"{what} inside T.Parallel",
                self.span(),
                why="a tile op is done by the whole block; T.Parallel holds statements on single elements",
                help="move it out of the loop, or write the elements one by one",
            )

    def compare(self, ops: Sequence[str], values: Sequence[Any]) -> Any:
        out: Any = True
        for op, a, b in zip(ops, values, values[1:], strict=False):
            part = compared(op, a, b)
            out = part if out is True else self.both(out, part)
            if out is False:
                return False
        return out

    @staticmethod
    def both(a: Any, b: Any) -> Any:
        if not isinstance(a, (Expr, Tile)):
            return b if a else a
        return binary("and", a, b)

    def logical(self, op: str, values: Sequence[Callable[[], Any]]) -> Any:
        """``and`` / ``or``: Python values short-circuit, device values are evaluated both."""
        out = values[0]()
        for value in values[1:]:
            if isinstance(out, (Expr, Tile, NoValue)):
                out = binary(op, out, value())
            elif bool(out) == (op == "or"):
                return out
            else:
                out = value()
        return out

    def not_(self, value: Any) -> Any:
        return unary("not", value) if isinstance(value, (Expr, Tile, NoValue)) else not value

    def choose(self, k: int, condition: Any, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
        """``then if condition else other``."""
        if not isinstance(condition, (Expr, Tile, NoValue)):
            return then() if condition else other()
        with self.at(self.span(k)):
            return select(condition, then(), other())

    def assert_(self, k: int, condition: Any, message: Any = None) -> None:
        span = self.span(k)
        with self.at(span):
            if isinstance(condition, (Expr, Tile)):
                self.emit(Assert(truth(condition), str(message or ""), span=span))
            elif not condition:
                raise KernelError(f"assertion failed: {message}" if message else "assertion failed", span)

    def call(self, k: int, function: Any, /, *arguments: Any, **keywords: Any) -> Any:
        """A call in a kernel: builtins have device meanings, types convert, everything else is called as it is."""
        for a in (*arguments, *keywords.values()):
            if isinstance(a, NoValue):
                with self.at(self.span(k)):
                    a.fail()
        with self.at(self.span(k)):
            if isinstance(function, DType):
                if len(arguments) != 1 or keywords:
                    raise KernelError(f"{function} converts one value, {len(arguments)} are given")
                return cast(arguments[0], function)
            special = BUILTINS.get(function) if isinstance(function, (type, builtins_function)) else None
            if special is not None and (function in ALWAYS or any(symbolic(a) for a in arguments)):
                return special(self, *arguments, **keywords)
            try:
                return function(*arguments, **keywords)
            except TypeError as error:
                check_signature(function, arguments, keywords, error)
                raise


__all__ = ["Builder", "current"]
