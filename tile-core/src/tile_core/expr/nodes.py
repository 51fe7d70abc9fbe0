"""Scalar expressions: frozen values with structural equality. A span never takes part in equality.

Operands of one node always have the same type: the constructors in ``make`` insert the conversions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, overload

from ..dtypes import BOOL, DType
from ..span import Span


class Space(str, Enum):
    """Where a buffer lives, as the user says it; a target's ``MemorySpace`` says what that is in hardware."""

    GLOBAL = "global"
    SHARED = "shared"
    FRAGMENT = "fragment"  # a tile spread over the registers of the block's threads
    LOCAL = "local"  # a private array of each thread
    VAR = "var"  # a private, mutable scalar of each thread; its shape is ()

    __hash__ = str.__hash__  # Enum.__hash__ is a Python-level call

    def __str__(self) -> str:
        return self.value


def _hash_once(self: Any) -> int:
    """The hash of a node, kept in it: trees are keys of many tables, and hashing one visits all of it."""
    found = self.__dict__.get("_hash")
    if found is None:
        fields = tuple(getattr(self, name) for name in self.__match_args__ if name != "span")
        found = self.__dict__["_hash"] = hash((type(self).__name__, fields))
    return found


def _without_hash(self: Any) -> dict[str, Any]:
    """What pickle keeps of a node: hashes of strings differ between processes."""
    return {name: value for name, value in self.__dict__.items() if name != "_hash"}


@dataclass(frozen=True)
class Expr:
    """A scalar value of type ``dtype``. Arithmetic operators build new expressions."""

    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)

    __getstate__ = _without_hash

    @property
    def dtype(self) -> DType:
        raise NotImplementedError

    def astype(self, dtype: Any) -> Expr:
        """This value converted to ``dtype`` (a type, or its name)."""
        return _make().cast(self, dtype)

    def __bool__(self) -> bool:
        raise _make().no_truth(self)

    def __add__(self, other: Any) -> Expr:
        return _make().binary("+", self, other)

    def __radd__(self, other: Any) -> Expr:
        return _make().binary("+", other, self)

    def __sub__(self, other: Any) -> Expr:
        return _make().binary("-", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return _make().binary("-", other, self)

    def __mul__(self, other: Any) -> Expr:
        return _make().binary("*", self, other)

    def __rmul__(self, other: Any) -> Expr:
        return _make().binary("*", other, self)

    def __truediv__(self, other: Any) -> Expr:
        return _make().binary("/", self, other)

    def __rtruediv__(self, other: Any) -> Expr:
        return _make().binary("/", other, self)

    def __floordiv__(self, other: Any) -> Expr:
        return _make().binary("//", self, other)

    def __rfloordiv__(self, other: Any) -> Expr:
        return _make().binary("//", other, self)

    def __mod__(self, other: Any) -> Expr:
        return _make().binary("%", self, other)

    def __rmod__(self, other: Any) -> Expr:
        return _make().binary("%", other, self)

    def __pow__(self, other: Any) -> Expr:
        return _make().call("pow", self, other)

    def __rpow__(self, other: Any) -> Expr:
        return _make().call("pow", other, self)

    def __lshift__(self, other: Any) -> Expr:
        return _make().binary("<<", self, other)

    def __rlshift__(self, other: Any) -> Expr:
        return _make().binary("<<", other, self)

    def __rshift__(self, other: Any) -> Expr:
        return _make().binary(">>", self, other)

    def __rrshift__(self, other: Any) -> Expr:
        return _make().binary(">>", other, self)

    def __and__(self, other: Any) -> Expr:
        return _make().binary("&", self, other)

    def __rand__(self, other: Any) -> Expr:
        return _make().binary("&", other, self)

    def __or__(self, other: Any) -> Expr:
        return _make().binary("|", self, other)

    def __ror__(self, other: Any) -> Expr:
        return _make().binary("|", other, self)

    def __xor__(self, other: Any) -> Expr:
        return _make().binary("^", self, other)

    def __rxor__(self, other: Any) -> Expr:
        return _make().binary("^", other, self)

    def __lt__(self, other: Any) -> Expr:
        return _make().binary("<", self, other)

    def __le__(self, other: Any) -> Expr:
        return _make().binary("<=", self, other)

    def __gt__(self, other: Any) -> Expr:
        return _make().binary(">", self, other)

    def __ge__(self, other: Any) -> Expr:
        return _make().binary(">=", self, other)

    def __neg__(self) -> Expr:
        return _make().unary("-", self)

    def __pos__(self) -> Expr:
        return self

    def __invert__(self) -> Expr:
        return _make().unary("~", self)

    def __abs__(self) -> Expr:
        return _make().call("abs", self)

    def __index__(self) -> int:
        raise _make().no_number(self)

    __int__ = __float__ = __index__


def _make() -> Any:
    from . import make

    return make


@dataclass(frozen=True)
class Const(Expr):
    """A number. ``value`` is an int, float or bool that fits ``type``."""

    value: int | float | bool
    type: DType

    __hash__ = _hash_once

    @property
    def dtype(self) -> DType:
        return self.type


@dataclass(frozen=True)
class Var(Expr):
    """A name for one value: a loop variable, a block or thread number, a bound value, a symbolic dimension.

    ``number`` tells apart variables of one name within a program; symbolic dimensions have number 0, so that two
    of one name are the same dimension.
    """

    name: str
    type: DType
    number: int = 0

    __hash__ = _hash_once

    @property
    def dtype(self) -> DType:
        return self.type


@dataclass(frozen=True)
class Unary(Expr):
    """``op`` is one of ``-`` ``~`` (bits) ``not``."""

    op: str
    value: Expr

    __hash__ = _hash_once

    @property
    def dtype(self) -> DType:
        return self.value.dtype


COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))
LOGICAL = frozenset(("and", "or"))
ARITHMETIC = frozenset(("+", "-", "*", "/", "//", "%", "truncdiv", "truncmod", "min", "max"))
BITWISE = frozenset(("&", "|", "^", "<<", ">>"))


@dataclass(frozen=True)
class Binary(Expr):
    """``a op b``; both sides have one type.

    ``//`` and ``%`` round to minus infinity as in Python, ``truncdiv`` and ``truncmod`` to zero as in C.
    ``min`` and ``max`` of floats give the operand that is not NaN (IEEE 754-2008 minNum, maxNum).
    ``/`` is division of floats. ``and`` and ``or`` evaluate both sides.
    """

    op: str
    a: Expr
    b: Expr

    __hash__ = _hash_once

    @property
    def dtype(self) -> DType:
        at: Expr = self
        while isinstance(at, Binary):  # a sum has as many levels as terms
            if at.op in COMPARISONS or at.op in LOGICAL:
                return BOOL
            at = at.a
        return at.dtype


@dataclass(frozen=True)
class Select(Expr):
    """``then if condition else other``. Only the chosen side is evaluated when ``lazy``."""

    condition: Expr
    then: Expr
    other: Expr
    lazy: bool = True

    __hash__ = _hash_once

    @property
    def dtype(self) -> DType:
        return self.then.dtype


@dataclass(frozen=True)
class Cast(Expr):
    """The value converted to ``type``: floats round to nearest even; float to integer rounds to zero."""

    value: Expr
    type: DType

    __hash__ = _hash_once

    @property
    def dtype(self) -> DType:
        return self.type


@dataclass(frozen=True)
class Bitcast(Expr):
    """The bits of the value, read as ``type`` of the same width."""

    value: Expr
    type: DType

    __hash__ = _hash_once

    @property
    def dtype(self) -> DType:
        return self.type


@dataclass(frozen=True)
class Call(Expr):
    """A scalar function of ``INTRINSICS`` (see ``intrinsics.py``); all arguments have been converted."""

    function: str
    arguments: tuple[Expr, ...]
    type: DType

    __hash__ = _hash_once

    @property
    def dtype(self) -> DType:
        return self.type


@overload
def row_major(shape: Sequence[int]) -> tuple[int, ...]: ...
@overload
def row_major(shape: Sequence[int | Expr]) -> tuple[int | Expr, ...]: ...
def row_major(shape: Sequence[int | Expr]) -> tuple[int | Expr, ...]:
    """Strides in elements of a contiguous array whose last dimension changes fastest."""
    out: list[int | Expr] = []
    step: int | Expr = 1
    for extent in reversed(shape):
        out.append(step)
        step = extent * step if isinstance(extent, Expr) else step * extent
    return tuple(reversed(out))


@dataclass(frozen=True)
class Buffer:
    """A tile or a tensor. Dimensions are ints where known, else expressions over symbolic dimensions.

    ``strides`` count elements; None means row-major contiguous. ``base`` makes a tensor over a pointer value.
    A view of another buffer (``T.view``, ``T.reshape``) has ``source`` set and shares its storage: the same bits in
    row-major order. ``number`` tells apart buffers of one name within a program. ``distinct``: the caller sees to it that no
    two elements are equal.
    """

    name: str
    shape: tuple[int | Expr, ...]
    dtype: DType
    space: Space
    strides: tuple[int | Expr, ...] | None = None
    number: int = 0
    source: Buffer | None = None
    base: Var | None = None
    span: Span | None = field(default=None, compare=False, repr=False)
    distinct: bool = False

    __hash__ = _hash_once
    __getstate__ = _without_hash

    def __post_init__(self) -> None:
        if self.strides is not None and len(self.strides) != len(self.shape):
            raise ValueError(f"{self.name}: {len(self.strides)} strides for {len(self.shape)} dimensions")

    def __str__(self) -> str:
        return self.name

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def storage(self) -> Buffer:
        """The buffer that owns the memory: itself, or what it is a view of."""
        at = self
        while at.source is not None:
            at = at.source
        return at

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        """The shape if every dimension is a number, else None."""
        known = tuple(d for d in self.shape if isinstance(d, int))
        return known if len(known) == len(self.shape) else None

    def row_major_strides(self) -> tuple[int | Expr, ...]:
        """``strides``, or the strides of the contiguous row-major order."""
        return row_major(self.shape) if self.strides is None else self.strides


@dataclass(frozen=True)
class Load(Expr):
    """The element of ``buffer`` at ``indices`` (one per dimension; () for a VAR)."""

    buffer: Buffer
    indices: tuple[Expr, ...]

    __hash__ = _hash_once

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype
