"""Python's control flow in a kernel: loops and branches that run here, and those that become the device's."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import wraps
from typing import Any, NoReturn

from ..errors import KernelError
from ..expr import Const, Expr, truth
from ..program import Break, Continue, If, While
from ..span import Span
from .loops import LaunchSpec, LoopSpec, counted
from .names import Names
from .scopes import BRANCH, DEVICE, PARALLEL, STATIC, Scope, Targets
from .several import several
from .tiles import NoValue, Tile, View


class Flow(Names):
    """Called by rewritten code for ``for``, ``while``, ``if``, ``with``, ``break`` and ``return``."""

    def loop(self, k: int, iterable: Any, names: Targets = None) -> Iterator[Any]:
        """``for ... in iterable``: a device loop yields its variables once, a Python iterable runs here."""
        span = self.span(k)
        if isinstance(iterable, LoopSpec):
            with self.opened(span, iterable, names) as value:
                yield value
            self.dynamic = True
            return
        if isinstance(iterable, (NoValue, Tile, View, Expr)):
            with self.at(span):
                refuse_iteration(iterable)
        self.scopes.append(Scope(STATIC))
        try:
            yield from iterable
        finally:
            self.scopes.pop()
            self.dynamic = False

    def listed(self, k: int, iterable: Any) -> Any:
        """What a comprehension iterates over: values of Python, as its result is a container of Python."""
        if isinstance(iterable, LoopSpec):
            raise KernelError(
                "a loop of the device stands in a comprehension",
                self.span(k),
                why="a comprehension makes a Python container while the kernel is built",
                help="use range(...) for values of Python, or write the loop as a statement",
            )
        return iterable

    @contextmanager
    def opened(self, span: Span | None, manager: Any, names: Targets) -> Generator[Any, None, None]:
        """Open a loop or launch; only its head, not its body, is placed at ``span``."""
        with ExitStack() as stack:
            with self.at(span):
                value = stack.enter_context(manager.open(self, names))
            yield value

    def range(self, k: int, *arguments: Any) -> Any:
        """``range`` of a ``for`` statement is a serial loop of the device."""
        with self.at(self.span(k)):
            start, count, step = counted(*arguments)
            return LoopSpec("serial", start, (count,), step)

    def while_(self, k: int, condition: Callable[[], Any], literal: bool) -> Iterator[None]:
        span = self.span(k)
        with self.at(span):
            value = True if literal else condition()
        if isinstance(value, (Expr, Tile)) or literal:
            with self.scope(DEVICE) as body:
                yield
            self.emit(While(truth(value), tuple(body), span=span))
            self.dynamic = True
            return
        self.scopes.append(Scope(STATIC))
        try:
            while value:
                yield
                value = condition()
        finally:
            self.scopes.pop()
            self.dynamic = False

    def break_(self, k: int, kind: str) -> bool:
        """``break`` or ``continue``. True: Python does it, in a loop that runs while the kernel is built."""
        for scope in reversed(self.scopes):
            if scope.kind == STATIC and scope is self.scopes[-1]:
                return True
            if scope.kind == DEVICE:
                self.emit((Break if kind == "break" else Continue)(span=self.span(k)))
                return False
            if scope.kind in (STATIC, PARALLEL):
                what = (
                    "T.Parallel: its iterations have no order"
                    if scope.kind == PARALLEL
                    else "a loop over Python values"
                )
                raise KernelError(
                    f"a condition that the device decides cannot {kind} {what}",
                    self.span(k),
                    help="use T.serial for the loop, or guard the statements with `if`",
                )
        raise KernelError(f"{kind} outside of a loop", self.span(k))

    def test(self, k: int, condition: Any) -> bool | None:
        """An ``if`` condition: True or False if it is known now, None if the device decides."""
        if not isinstance(condition, (Expr, Tile, NoValue, View)):
            return bool(condition)
        with self.at(self.span(k)):
            value = truth(condition)
        if isinstance(value, Const):
            return bool(value.value)
        self.pending.append((value, self.span(k), ()))
        return None

    def then(self, test: bool | None) -> None:
        if test is None:
            self.scopes.append(Scope(BRANCH))

    def end_then(self, test: bool | None) -> None:
        if test is None:
            condition, span, _ = self.pending.pop()
            self.pending.append((condition, span, tuple(self.scopes.pop().body)))

    def otherwise(self, test: bool | None) -> None:
        if test is None:
            self.scopes.append(Scope(BRANCH))

    def end_if(self, test: bool | None) -> None:
        if test is None:
            condition, span, then = self.pending.pop()
            self.emit(If(condition, then, tuple(self.scopes.pop().body), span=span))

    @contextmanager
    def with_(
        self, k: int, manager: AbstractContextManager[Any], names: Targets = None
    ) -> Generator[Any, None, None]:
        """``with`` around tile constructs, and around any other context manager of Python."""
        span = self.span(k)
        self.dynamic = False
        if isinstance(manager, (LaunchSpec, LoopSpec)):
            with self.opened(span, manager, names) as value:
                yield value
            self.dynamic = isinstance(manager, LoopSpec)
            return
        with manager as value:
            yield value

    def return_(self, k: int, value: Any) -> Any:
        """``return`` of a kernel: the tensors it gives back."""
        if self.macro_depth:
            if any(s.kind in (DEVICE, BRANCH, PARALLEL) for s in self.scopes[self.macro_depth[-1] :]):
                raise KernelError(
                    "a macro cannot return from inside a loop or branch of the device", self.span(k)
                )
            return value
        if value is None:
            return None
        tiles = several(value)
        if len(self.scopes) > 1 or not all(isinstance(t, Tile) and t.buffer in self.outputs for t in tiles):
            raise KernelError(
                "a kernel returns tensors made by T.empty, at its end",
                self.span(k),
                help="declare outputs with C = T.empty(shape, dtype) and `return C` after the T.Kernel block",
            )
        self.returned = [t.buffer for t in tiles]
        return value

    def inlined(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of the kernel whose ``return`` gives a value to its caller."""

        @wraps(function)
        def inline(*arguments: Any, **keywords: Any) -> Any:
            self.hints = ()
            self.macro_depth.append(len(self.scopes))
            try:
                return function(*arguments, **keywords)
            finally:
                self.macro_depth.pop()

        return inline


def refuse_iteration(value: NoValue | Tile | View | Expr) -> NoReturn:
    """Raise: ``for`` runs over index values, not over the elements of a tile."""
    match value:
        case NoValue():
            value.fail()
        case Tile():
            what = value.name
        case View():
            what = f"a region of {value.region.buffer.name}"
        case _:
            what = "a single value"
    raise KernelError(f"{what} is not iterated", help="loop over its indices: for i in T.serial(n)")
