"""The builder: a kernel's rewritten Python function calls it, and statements of a tile program come out."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any

from ..dtypes import DType, dtype
from ..errors import KernelError, TileError, did_you_mean
from ..expr import (
    Binary,
    Buffer,
    Const,
    Expr,
    Load,
    Space,
    Var,
    binary,
    cast,
    select,
    truth,
    unary,
    walk,
)
from ..expr import call as intrinsic
from ..program import (
    Alloc,
    Assert,
    Bind,
    Break,
    Breakpoint,
    Continue,
    Copy,
    Fill,
    If,
    Launch,
    Param,
    Stmt,
    Store,
    While,
)
from ..span import Span
from .tiles import NoValue, Tile, View, element_or_region, is_cell

_builder: ContextVar[Builder] = ContextVar("tile_builder")


def current() -> Builder:
    """The builder of the kernel being built. Raises ``KernelError`` outside of one."""
    found = _builder.get(None)
    if found is None:
        raise KernelError(
            "this is only possible inside a kernel", help="put it into a function marked @T.prim_func"
        )
    return found


NOTHING = object()  # an annotation without a value
Names = "str | tuple[str, ...] | None"  # the targets of a loop or `with`, as texts

STATIC, DEVICE, BRANCH, ONCE, PARALLEL = "static", "device", "branch", "once", "parallel"


@dataclass
class Scope:
    """An open body: its kind, and the statements so far. A static loop has none: its statements go outwards."""

    kind: str
    body: list[Stmt] = field(default_factory=list[Stmt])


@dataclass
class LaunchState:
    """What is said about a launch inside its body."""

    vars: tuple[Var, ...]
    grid: tuple[int | Expr, ...]
    threads: tuple[int, ...] | None
    thread_vars: tuple[Var, ...] = ()
    layouts: list[tuple[Buffer, Any]] = field(default_factory=list[tuple[Buffer, Any]])
    swizzle: tuple[int, str] | None = None


class Builder:
    """State of one kernel while it is built. Methods that start with a span number are called by rewritten code."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = [Scope(ONCE)]
        self.params: list[Param] = []
        self.outputs: list[Buffer] = []
        self.returned: list[Buffer] | None = None
        self.launch: LaunchState | None = None
        self.spans: Sequence[Span] = ()
        self.callers: list[Span] = []
        self.hint: str = ""
        self.fresh: set[int] = set()
        self.names: dict[str, int] = {}
        self.dynamic = False  # whether the loop or branch that just ended was the device's
        self.pending: list[tuple[Expr, Span | None, tuple[Stmt, ...]]] = []  # conditions of open ifs
        self.macro_depth: list[int] = []  # number of scopes at each macro call

    @contextmanager
    def active(self) -> Iterator[Builder]:
        """Make this the current builder."""
        token = _builder.set(self)
        try:
            yield self
        finally:
            _builder.reset(token)

    # Places.

    def span(self, k: int | None = None) -> Span | None:
        """The span number ``k`` of the code that is running, or that of the innermost call."""
        if k is not None and k < len(self.spans):
            return self.spans[k]
        return self.callers[-1] if self.callers else None

    @contextmanager
    def at(self, span: Span | None) -> Iterator[None]:
        """Errors and statements made inside, if they have no place, are placed at ``span``."""
        if span is None:
            yield
            return
        self.callers.append(span)
        try:
            yield
        except TileError as error:
            raise error.at(span)  # noqa: B904  the same error
        finally:
            self.callers.pop()

    # Statements and scopes.

    def emit(self, s: Stmt) -> None:
        if s.span is None and self.callers:
            s = replace(s, span=self.callers[-1])
        self.body.append(s)

    @property
    def body(self) -> list[Stmt]:
        return next(s.body for s in reversed(self.scopes) if s.kind != STATIC)

    @contextmanager
    def scope(self, kind: str) -> Iterator[list[Stmt]]:
        scope = Scope(kind)
        self.scopes.append(scope)
        yield scope.body
        self.scopes.pop()

    def inside(self, kind: str) -> bool:
        return any(s.kind == kind for s in self.scopes)

    def unique(self, name: str) -> int:
        """A number that tells this use of ``name`` from earlier ones of this kernel."""
        self.names[name] = self.names.get(name, 0) + 1
        return self.names[name]

    def var(self, name: str, type: DType | str = "int32") -> Var:
        return Var(name, dtype(type), self.unique(name), span=self.span())

    def take_hint(self, default: str) -> str:
        name, self.hint = self.hint or default, ""
        return name

    def alloc(self, shape: Sequence[Any], type: Any, space: Space, default: str) -> Tile:
        """A new buffer, named after the Python name it is assigned to."""
        from ..expr import dim

        name = self.take_hint(default)
        sizes = tuple(dim(d) for d in shape)
        if bad := [d for d in sizes if isinstance(d, int) and d < 0]:
            raise KernelError(f"an extent is negative: {bad[0]}")
        buffer = Buffer(name, sizes, dtype(type), space, number=self.unique(name), span=self.span())
        self.emit(Alloc(buffer, span=buffer.span))
        self.fresh.add(id(buffer))
        return Tile(buffer)

    # Called by rewritten code: names.

    def name(self, name: str) -> None:
        """The next buffer is assigned to ``name``."""
        self.hint = name

    def unbound(self, *names: str) -> Any:
        out = tuple(NoValue(n, "it is used before anything is assigned to it") for n in names)
        return out[0] if len(out) == 1 else out

    def assign(self, k: int, name: str, value: Any, old: Any) -> Any:
        """``name = value``. A scalar cell is stored to; a value that reads memory is read now, once."""
        self.hint = ""
        if isinstance(value, Tile) and id(value.buffer) in self.fresh:
            self.fresh.discard(id(value.buffer))
            return value
        if (
            is_cell(old)
            and not isinstance(value, (NoValue, View))
            and not (isinstance(value, Tile) and value.ndim)
        ):
            with self.at(self.span(k)):
                self.emit(Store(old.buffer, (), cast(value, old.dtype), span=self.span(k)))
            return old
        if is_cell(value):
            value = value.as_expr()
        return self._bind(k, name, value) if isinstance(value, Expr) and self.impure(value) else value

    def settled(self, k: int, value: Any) -> Any:
        """The right side of an assignment to several targets: all of it is read before any target is written."""
        if isinstance(value, (tuple, list)):
            return [self.settled(k, v) for v in value]
        value = value.as_expr() if is_cell(value) and id(value.buffer) not in self.fresh else value
        return self._bind(k, "value", value) if isinstance(value, Expr) and self.impure(value) else value

    def _bind(self, k: int, name: str, value: Expr) -> Var:
        var = Var(name, value.dtype, self.unique(name), span=self.span(k))
        self.emit(Bind(var, value, span=self.span(k)))
        return var

    @staticmethod
    def impure(value: Expr) -> bool:
        """Whether evaluating later, or twice, could differ or cost more: it reads memory or calls a function."""
        return any(isinstance(x, Load) or not isinstance(x, (Var, Const, Binary)) for x in walk(value))

    def annotate(self, k: int, name: str, annotation: Any, value: Any, old: Any) -> Any:
        """``name: annotation = value`` or ``name: annotation``."""
        from .types import Tensor

        with self.at(self.span(k)):
            if isinstance(annotation, Tensor):
                return self.declare(name, annotation, old)
            if value is NOTHING:
                return old
            if isinstance(annotation, DType) or annotation in (int, float, bool):
                return self._bind(k, name, cast(value, dtype(annotation)))
        return self.assign(k, name, value, old)

    def declare(self, name: str, annotation: Any, old: Any) -> Any:
        """``A: T.Tensor(...)`` in an eager kernel. Overridden where arguments are known."""
        raise KernelError(
            f"{name} is declared as a tensor inside a kernel whose parameters are annotated already"
        )

    def entering(self, k: int, names: Sequence[str], values: Sequence[Any]) -> Any:
        """At the start of a body: names that it assigns have no one value if it runs many times."""
        if self.scopes[-1].kind not in (DEVICE, PARALLEL):
            return self._packed(values)
        why = "it is assigned in a loop that runs on the device, and read before that in the same iteration"
        return self._packed([self._spoiled(n, v, why, k) for n, v in zip(names, values, strict=True)])

    def leaving(
        self, k: int, dynamic: Any, names: Sequence[str], before: Sequence[Any], now: Sequence[Any]
    ) -> Any:
        """After a body that may have run any number of times: names that it assigned have no one value."""
        if not dynamic:
            return self._packed(now)
        why = "it was assigned in a loop or branch that the device decides about"
        out = [
            v if v is old else self._spoiled(n, v, why, k)
            for n, old, v in zip(names, before, now, strict=True)
        ]
        return self._packed(out)

    def _spoiled(self, name: str, value: Any, why: str, k: int) -> Any:
        if isinstance(value, NoValue) or is_cell(value):
            return value
        return NoValue(
            name, why, f"make it a mutable scalar first: {name} = T.alloc_var(dtype)", self.span(k)
        )

    @staticmethod
    def _packed(values: Sequence[Any]) -> Any:
        return values[0] if len(values) == 1 else tuple(values)

    def restored(self, test: Any, before: Any, now: Any) -> Any:
        """Names at the start of ``else``: as before ``if`` when the device decides."""
        return before if test is None else now

    # Called by rewritten code: control.

    def loop(self, k: int, iterable: Any, names: Names = None) -> Iterator[Any]:
        """``for ... in iterable``: a device loop yields its variables once, a Python iterable runs here."""
        from .control import LoopSpec

        span = self.span(k)
        if isinstance(iterable, LoopSpec):
            with self.opened(span, iterable, names) as value:
                yield value
            self.dynamic = True
            return
        if isinstance(iterable, (NoValue, Tile, Expr)):
            with self.at(span):
                iter(iterable) if not isinstance(iterable, Expr) else _not_iterable(iterable)
        self.scopes.append(Scope(STATIC))
        try:
            yield from iterable
        finally:
            self.scopes.pop()
            self.dynamic = False

    @contextmanager
    def opened(self, span: Span | None, manager: Any, names: Names) -> Iterator[Any]:
        """Open a loop or launch; only its head, not its body, is placed at ``span``."""
        with ExitStack() as stack:
            with self.at(span):
                value = stack.enter_context(manager.open(self, names))
            yield value

    def range(self, k: int, *arguments: Any) -> Any:
        """``range`` of a ``for`` statement is a serial loop of the device."""
        from .control import serial

        with self.at(self.span(k)):
            return serial(*arguments)

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
    def with_(self, k: int, manager: AbstractContextManager[Any], names: Names = None) -> Iterator[Any]:
        """``with`` around tile constructs, and around any other context manager of Python."""
        from .control import LaunchSpec, LoopSpec

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
        tiles = value if isinstance(value, (tuple, list)) else (value,)
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
            self.hint = ""
            self.macro_depth.append(len(self.scopes))
            try:
                return function(*arguments, **keywords)
            finally:
                self.macro_depth.pop()

        return inline

    # Called by rewritten code: expressions.

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
        if not isinstance(target, Tile):
            target[index] = value
            return
        span = self.span(k)
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
            part = _compared(op, a, b)
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

    def call(self, k: int, function: Any, *arguments: Any, **keywords: Any) -> Any:
        """A call in a kernel: builtins have device meanings, types convert, everything else is called as it is."""
        for a in (*arguments, *keywords.values()):
            if isinstance(a, NoValue):
                with self.at(self.span(k)):
                    a.fail()
        with self.at(self.span(k)):
            if isinstance(function, DType):
                return cast(arguments[0], function)
            special = BUILTINS.get(function) if isinstance(function, (type, builtins_function)) else None
            if special is not None and (function in ALWAYS or any(_symbolic(a) for a in arguments)):
                return special(self, *arguments, **keywords)
            try:
                return function(*arguments, **keywords)
            except TypeError as error:
                _check_signature(function, arguments, keywords, error)
                raise

    # Meanings of Python's builtins.

    def print_(self, *values: Any, **_: Any) -> None:
        from .debug import print as device_print

        message = " ".join(v for v in values if isinstance(v, str))
        for v in [v for v in values if not isinstance(v, str)] or [None]:
            device_print(v, message)

    def breakpoint_(self) -> None:
        self.emit(Breakpoint(span=self.span()))


builtins_function = type(len)


def _symbolic(value: Any) -> bool:
    return isinstance(value, (Expr, Tile, View))


def _folded(op: str) -> Callable[..., Any]:
    def fold(_: Builder, *values: Any) -> Any:
        items = list(values[0]) if len(values) == 1 else list(values)
        out = items[0]
        for v in items[1:]:
            out = binary(op, out, v)
        return out

    return fold


BUILTINS: dict[Any, Callable[..., Any]] = {
    builtins.min: _folded("min"),
    builtins.max: _folded("max"),
    builtins.abs: lambda _, x: intrinsic("abs", x),
    builtins.pow: lambda _, x, y: intrinsic("pow", x, y),
    builtins.round: lambda _, x: intrinsic("round", x),
    builtins.int: lambda _, x: cast(x, "int32"),
    builtins.float: lambda _, x: cast(x, "float32"),
    builtins.bool: lambda _, x: truth(x),
    builtins.print: Builder.print_,
    builtins.breakpoint: lambda b: b.breakpoint_(),
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


def _compared(op: str, a: Any, b: Any) -> Any:
    scalar = op not in ("is", "is not", "in", "not in")
    if (
        scalar
        and (_symbolic(a) or _symbolic(b))
        and not isinstance(a, (str, DType))
        and not isinstance(b, (str, DType))
    ):
        if a is None or b is None:
            return op == "!="
        return binary(op, a, b)
    return PYTHON_COMPARISONS[op](a, b)


def _not_iterable(value: Expr) -> None:
    raise KernelError("a single value is not iterated", value.span, help="loop with T.serial(n)")


def _check_signature(
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


def build_launch(state: LaunchState, body: Sequence[Stmt], span: Span | None, default_threads: int) -> Launch:
    return Launch(
        state.vars,
        state.grid,
        state.threads or (default_threads,),
        tuple(body),
        state.thread_vars,
        tuple(state.layouts),
        state.swizzle,
        state.threads is not None,
        span=span,
    )


__all__ = ["NOTHING", "Builder", "Copy", "LaunchState", "build_launch", "current"]
