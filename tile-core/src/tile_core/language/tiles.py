"""What a kernel's variables hold while it is built: tiles, scalar cells, regions, and names that have no value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from ..dtypes import DType
from ..errors import KernelError
from ..expr import Buffer, Const, Expr, Load, Space, call, dim, expr, shape_text
from ..expr.affine import difference
from ..expr.make import binary, unary
from ..program import Region
from ..span import Span
from .several import is_tuple

ARITHMETIC = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "lshift": "<<",
    "rshift": ">>",
    "and": "&",
    "or": "|",
    "xor": "^",
}


C = TypeVar("C", bound=type)


def _operators(cls: C) -> C:
    """Give a class Python's arithmetic by way of ``expr``: a scalar cell is read, anything else is refused there."""

    def forward(op: str) -> Callable[[Any, Any], Expr]:
        return lambda self, other: binary(op, expr(self), other)

    def backward(op: str) -> Callable[[Any, Any], Expr]:
        return lambda self, other: binary(op, other, expr(self))

    for name, op in ARITHMETIC.items():
        setattr(cls, f"__{name}__", forward(op))
        setattr(cls, f"__r{name}__", backward(op))
    for name, op in {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
        setattr(cls, f"__{name}__", forward(op))
    # what the loops above add, checkers cannot see; nor these
    cls.__neg__ = lambda self: unary("-", self)  # type: ignore[attr-defined]
    cls.__invert__ = lambda self: unary("~", self)  # type: ignore[attr-defined]
    cls.__pow__ = lambda self, other: call("pow", expr(self), other)  # type: ignore[attr-defined]
    cls.__abs__ = lambda self: call("abs", expr(self))  # type: ignore[attr-defined]
    cls.__bool__ = lambda self: bool(expr(self))  # type: ignore[attr-defined]
    return cls


@_operators
@dataclass(frozen=True, eq=False)
class Tile:
    """A tensor or an on-chip tile in a kernel: index it for an element, slice it for a region."""

    buffer: Buffer

    @property
    def shape(self) -> tuple[Any, ...]:
        """Extents: ints, or expressions over symbolic dimensions."""
        return self.buffer.shape

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype

    @property
    def ndim(self) -> int:
        return self.buffer.ndim

    @property
    def name(self) -> str:
        return self.buffer.name

    def scope(self) -> str:
        """Where it lives: global, shared, fragment, local or var."""
        return self.buffer.space.value

    def as_expr(self) -> Expr:
        return expr(self.buffer)

    def astype(self, dtype: Any) -> Expr:
        return self.as_expr().astype(dtype)

    def __len__(self) -> int:
        if not self.buffer.shape or not isinstance(self.buffer.shape[0], int):
            raise KernelError(f"the length of {self.name} is not a number known here")
        return self.buffer.shape[0]

    def __getitem__(self, index: Any) -> Any:
        return element_or_region(self.buffer, index, None)

    def __setitem__(self, index: Any, value: Any) -> None:
        from .builder import current

        current().store(None, self, index, value)

    __iter__ = None  # an index that may be anything else would otherwise make it iterable for ever

    def __repr__(self) -> str:
        return f"<{self.buffer.space} {self.name}{shape_text(self.shape)} {self.dtype}>"


@_operators
@dataclass(frozen=True, eq=False)
class View:
    """A region of a tile, made by slicing."""

    region: Region

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.region.shape

    @property
    def dtype(self) -> DType:
        return self.region.dtype

    def as_expr(self) -> NoReturn:
        raise KernelError(
            f"a region {shape_text(self.shape)} of {self.region.buffer.name} is used where a single value is needed",
            self.region.span,
        )


@dataclass(frozen=True, eq=False)
class NoValue:
    """A Python name that has no value here; every use raises, saying why."""

    name: str
    why: str
    help: str = ""
    span: Span | None = None

    def fail(self, *_: Any, **__: Any) -> NoReturn:
        raise KernelError(
            f"{self.name} has no value here",
            why=self.why,
            help=self.help,
            related=[("assigned here", self.span)] if self.span else (),
        )

    as_expr = __call__ = __getitem__ = __setitem__ = __iter__ = __len__ = __bool__ = fail

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self.fail()


for _name in (*ARITHMETIC, "lt", "le", "gt", "ge", "pow"):
    setattr(NoValue, f"__{_name}__", NoValue.fail)
    setattr(NoValue, f"__r{_name}__", NoValue.fail)


def element_or_region(buffer: Buffer, index: Any, span: Span | None) -> Any:
    """``buffer[index]``: a ``Load`` if every dimension has a single index, else a ``View``.

    Raises:
        KernelError: too many indices, a constant out of range, a slice with a step.
    """
    items = _full(buffer, index if is_tuple(index) else (index,), span)
    if not any(isinstance(i, slice) for i in items):
        indices = tuple(
            _index(i, d, buffer, n, span) for n, (i, d) in enumerate(zip(items, buffer.shape, strict=True))
        )
        return Load(buffer, indices, span=span)
    start: list[Expr] = []
    extent: list[int | Expr] = []
    point: list[bool] = []
    for n, (i, size) in enumerate(zip(items, buffer.shape, strict=True)):
        if isinstance(i, slice):
            low, count = _slice(i, size, buffer, n, span)
            start.append(low)
            extent.append(count)
        else:
            start.append(_index(i, size, buffer, n, span))
            extent.append(1)
        point.append(not isinstance(i, slice))
    return View(Region(buffer, tuple(start), tuple(extent), tuple(point), span=span))


def _full(buffer: Buffer, index: tuple[Any, ...], span: Span | None) -> tuple[Any, ...]:
    """The index with ``...`` spelled out and missing dimensions taken whole."""
    if len(index) == 1 and isinstance(index[0], tuple) and not index[0]:
        index = ()
    given = [i for i in index if i is not Ellipsis]
    if len(given) > buffer.ndim or len(index) - len(given) > 1:
        raise KernelError(
            f"{buffer.name} has {buffer.ndim} dimensions {shape_text(buffer.shape)}, {len(given)} indices are given",
            span,
        )
    missing = (slice(None),) * (buffer.ndim - len(given))
    at = next((n for n, i in enumerate(index) if i is Ellipsis), len(index))
    return (*index[:at], *missing, *index[at + 1 :])


def _index(i: Any, size: int | Expr, buffer: Buffer, dimension: int, span: Span | None) -> Expr:
    x = expr(i)
    if not x.dtype.is_integer:
        raise KernelError(f"{buffer.name} is indexed by a {x.dtype}", span, help="convert it: T.int32(...)")
    if isinstance(x, Const):
        value = int(x.value)
        # an empty dimension has no index; 0 is where an empty copy begins
        if isinstance(size, int) and not -size <= value < max(size, 1):
            raise KernelError(
                f"index {value} is out of range for dimension {dimension} of {buffer.name}, which has size {size}",
                span,
                related=_declared(buffer),
            )
        if value < 0:
            return expr(size) + value
    return x


def _slice(
    s: Any, size: int | Expr, buffer: Buffer, dimension: int, span: Span | None
) -> tuple[Expr, int | Expr]:
    if s.step not in (None, 1):
        raise KernelError(
            f"a slice of {buffer.name} has step {s.step}",
            span,
            help="slices step by 1; loop over the indices",
        )
    low = _bound(s.start, 0, size)
    high = _bound(s.stop, size, size)
    count = difference(high, low)
    extent = dim(high - low) if count is None else count
    if count is not None and count < 0:
        raise KernelError(f"a slice of dimension {dimension} of {buffer.name} ends before it starts", span)
    # a tensor's last tile may reach beyond it, and with small sizes a tile's number is a constant
    for edge in (low,) if buffer.space is Space.GLOBAL else (low, high):
        if isinstance(edge, Const) and isinstance(size, int) and not 0 <= edge.value <= size:
            raise KernelError(
                f"the slice reaches {edge.value}, outside dimension {dimension} of {buffer.name}, which has size {size}",
                span,
                why="a constant region must lie inside its tile",
                related=_declared(buffer),
            )
    return low, extent


def _bound(value: Any, default: int | Expr, size: int | Expr) -> Expr:
    x = expr(default if value is None else value)
    return expr(size) + int(x.value) if isinstance(x, Const) and value is not None and x.value < 0 else x


def _declared(buffer: Buffer) -> tuple[tuple[str, Span], ...]:
    return (("declared here", buffer.span),) if buffer.span else ()


def whole(buffer: Buffer, span: Span | None = None) -> Region:
    """All of a buffer."""
    zero = tuple(expr(0) for _ in buffer.shape)
    return Region(buffer, zero, buffer.shape, (False,) * buffer.ndim, True, span=span)


def is_cell(value: Any) -> bool:
    """Whether ``value`` is a mutable scalar (``T.alloc_var``)."""
    return isinstance(value, Tile) and value.buffer.space is Space.VAR
