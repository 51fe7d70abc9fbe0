"""Macros: functions that are built into the kernel that calls them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import update_wrapper
from types import FunctionType
from typing import Any

from ..errors import KernelError
from ..span import Span
from .builder import current
from .source import instantiate


class Macro:
    """An inlined piece of kernel. Calling it inside a kernel builds its body there."""

    def __init__(self, function: FunctionType) -> None:
        self.function = function
        update_wrapper(self, function)

    def __call__(self, /, *arguments: Any, **keywords: Any) -> Any:
        b = current()
        caller, outer = b.span(), b.spans
        if len(b.macro_depth) > 64:
            raise KernelError(f"{self.function.__name__} calls itself without end", caller)
        call, _, form = instantiate(self.function, b)
        b.spans = tuple(_called_from(s, caller) for s in form.spans)
        try:
            return b.inlined(call)(*arguments, **keywords)
        finally:
            b.spans = outer


def _called_from(span: Span, caller: Span | None) -> Span:
    return span if caller is None else replace(span, caller=caller)


def macro(function: Callable[..., Any]) -> Any:
    """Mark a function that is inlined into the kernels which call it: ``@T.macro``.

    It may take tiles, regions, scalars and Python values, and may return values.
    """
    if not isinstance(function, FunctionType):
        raise KernelError(f"@T.macro marks a function, not {function!r}")
    return Macro(function)
