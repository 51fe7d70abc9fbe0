"""State of a kernel while it is built: open bodies, places in the source, names of what is made."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..dtypes import DType, dtype
from ..errors import KernelError, TileError
from ..expr import Buffer, Expr, Space, Var, dim
from ..program import Alloc, Launch, Param, Stmt
from ..span import Span
from .tiles import Tile

if TYPE_CHECKING:
    from .builder import Builder

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
Targets = str | tuple[str, ...] | None  # the targets of a loop or `with`, as texts

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


class Scopes:
    """The open bodies of one kernel, and everything that is said about it so far."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = [Scope(ONCE)]
        self.params: list[Param] = []
        self.outputs: list[Buffer] = []
        self.returned: list[Buffer] | None = None
        self.launch: LaunchState | None = None
        self.spans: Sequence[Span] = ()
        self.callers: list[Span] = []
        self.hints: tuple[str, ...] = ()
        self.fresh: set[int] = set()
        self.names: dict[str, int] = {}
        self.dynamic = False  # whether the loop or branch that just ended was the device's
        self.pending: list[tuple[Expr, Span | None, tuple[Stmt, ...]]] = []  # conditions of open ifs
        self.macro_depth: list[int] = []  # number of scopes at each macro call

    @contextmanager
    def active(self) -> Generator[None, None, None]:
        """Make this the current builder."""
        token = _builder.set(self)  # type: ignore[arg-type]  the whole builder derives from this
        try:
            yield
        finally:
            _builder.reset(token)

    # Places.

    def span(self, k: int | None = None) -> Span | None:
        """The span number ``k`` of the code that is running, or that of the innermost call."""
        if k is not None and k < len(self.spans):
            return self.spans[k]
        return self.callers[-1] if self.callers else None

    @contextmanager
    def at(self, span: Span | None) -> Generator[None, None, None]:
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
    def scope(self, kind: str) -> Generator[list[Stmt], None, None]:
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
        name, *rest = self.hints or (default,)
        self.hints = tuple(rest)
        return name

    def alloc(self, shape: Sequence[Any], type: Any, space: Space, default: str) -> Tile:
        """A new buffer, named after the Python name it is assigned to."""
        name = self.take_hint(default)
        sizes = tuple(dim(d) for d in shape)
        if bad := [d for d in sizes if isinstance(d, int) and d < 0]:
            raise KernelError(f"an extent is negative: {bad[0]}")
        buffer = Buffer(name, sizes, dtype(type), space, number=self.unique(name), span=self.span())
        self.emit(Alloc(buffer, span=buffer.span))
        self.fresh.add(id(buffer))
        return Tile(buffer)


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
