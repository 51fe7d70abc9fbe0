"""Reductions, scans and votes over tiles."""

from __future__ import annotations

from typing import Any

from ..dtypes import BOOL
from ..errors import KernelError
from ..expr import Expr, cast, shape_text
from ..expr.affine import same_shape
from ..program import Fill, Quantify, Reduce, Region, Scan
from .builder import current
from .movement import region

INTEGER_ONLY = ("bitand", "bitor", "bitxor")
OF_NOTHING = {"sum": 0, "abssum": 0, "bitand": -1, "bitor": 0, "bitxor": 0}


def reduce(
    buffer: Any,
    out: Any,
    reduce_type: str,
    dim: int = -1,
    clear: bool = True,
    nan_propagate: bool = False,
    batch: int = 1,
) -> None:
    """``out = reduce(buffer)`` along ``dim``; ``reduce_type`` is sum, max, min, absmax, abssum, bitand, bitor or bitxor.

    ``out`` has the shape of ``buffer`` without ``dim``, or with 1 there. With ``clear`` false the old value takes part.
    max, min and absmax skip NaN unless ``nan_propagate``. ``batch`` is a hint.

    Raises:
        KernelError: a dimension that is not there, shapes that do not fit, or bits of a float.
    """
    del batch
    b = current()
    b.no_parallel(f"T.reduce_{reduce_type}")
    src, dst = region(buffer, "the source of a reduction"), region(out, "the result of a reduction")
    axis = _axis(dim, src)
    if reduce_type in INTEGER_ONLY and not (src.dtype.is_integer or src.dtype.is_bool):
        raise KernelError(f"{reduce_type} works on integers, {src.buffer.name} is {src.dtype}")
    rest = [d for n, d in enumerate(src.shape) if n != axis]
    kept = [1 if n == axis else d for n, d in enumerate(src.shape)]
    if not any(same_shape(dst.shape, s) for s in (rest, kept, rest or [1])):
        raise KernelError(
            f"reduce_{reduce_type}: {dst.buffer.name} has shape {shape_text(dst.shape)}, "
            f"{src.buffer.name} {shape_text(src.shape)} without dimension {axis} is {shape_text(rest)}",
            help=f"declare the result as T.alloc_fragment({shape_text(rest or [1])}, ...)",
        )
    if isinstance(src.shape[axis], int) and src.shape[axis] == 0:
        _of_nothing(reduce_type, src, dst, clear)
    else:
        b.emit(Reduce(reduce_type, src, dst, axis, clear, nan_propagate))


def _of_nothing(kind: str, src: Region, dst: Region, clear: bool) -> None:
    """A reduction over no elements leaves the value that changes nothing, if there is one."""
    if 0 in dst.shape:
        return
    if kind not in OF_NOTHING:
        raise KernelError(f"reduce_{kind} over no elements of {src.buffer.name} has no value")
    if clear:
        current().emit(Fill(dst, cast(OF_NOTHING[kind], dst.dtype)))


def _axis(dim: object, src: Region) -> int:
    rank = len(src.shape)
    if not isinstance(dim, int) or not -rank <= dim < rank:
        raise KernelError(f"{src.buffer.name} {shape_text(src.shape)} has no dimension {dim}")
    return dim % rank


def reduce_sum(buffer: Any, out: Any, dim: int = -1, clear: bool = True, batch: int = 1) -> None:
    """Sum along ``dim``, made in the type of ``out``. See ``reduce``."""
    reduce(buffer, out, "sum", dim, clear, batch=batch)


def reduce_max(
    buffer: Any, out: Any, dim: int = -1, clear: bool = True, batch: int = 1, nan_propagate: bool = False
) -> None:
    """Maximum along ``dim``. See ``reduce``."""
    reduce(buffer, out, "max", dim, clear, nan_propagate, batch)


def reduce_min(
    buffer: Any, out: Any, dim: int = -1, clear: bool = True, batch: int = 1, nan_propagate: bool = False
) -> None:
    """Minimum along ``dim``. See ``reduce``."""
    reduce(buffer, out, "min", dim, clear, nan_propagate, batch)


def reduce_absmax(
    buffer: Any, out: Any, dim: int = -1, clear: bool = True, batch: int = 1, nan_propagate: bool = False
) -> None:
    """Maximum of absolute values along ``dim``. See ``reduce``."""
    reduce(buffer, out, "absmax", dim, clear, nan_propagate, batch)


def reduce_abssum(buffer: Any, out: Any, dim: int = -1, clear: bool = True) -> None:
    """Sum of absolute values along ``dim``. See ``reduce``."""
    reduce(buffer, out, "abssum", dim, clear)


def reduce_bitand(buffer: Any, out: Any, dim: int = -1, clear: bool = True) -> None:
    """Bitwise and along ``dim``, of integers. See ``reduce``."""
    reduce(buffer, out, "bitand", dim, clear)


def reduce_bitor(buffer: Any, out: Any, dim: int = -1, clear: bool = True) -> None:
    """Bitwise or along ``dim``, of integers. See ``reduce``."""
    reduce(buffer, out, "bitor", dim, clear)


def reduce_bitxor(buffer: Any, out: Any, dim: int = -1, clear: bool = True) -> None:
    """Bitwise exclusive or along ``dim``, of integers. See ``reduce``."""
    reduce(buffer, out, "bitxor", dim, clear)


def _scan(kind: str, src: Any, dst: Any, dim: int, reverse: bool) -> None:
    b = current()
    b.no_parallel(f"T.cum{kind}")
    source = region(src, "the source of a scan")
    target = source if dst is None else region(dst, "the result of a scan")
    if not same_shape(source.shape, target.shape):
        raise KernelError(
            f"cum{kind}: the shapes {shape_text(source.shape)} and {shape_text(target.shape)} differ"
        )
    b.emit(Scan(kind, source, target, _axis(dim, source), reverse))


def cumsum(src: Any, dst: Any = None, dim: int = 0, reverse: bool = False) -> None:
    """Inclusive prefix sum along ``dim`` into ``dst`` (None: in place); ``reverse`` sums from the end."""
    _scan("sum", src, dst, dim, reverse)


def cummax(src: Any, dst: Any = None, dim: int = 0, reverse: bool = False) -> None:
    """Inclusive running maximum along ``dim`` into ``dst`` (None: in place)."""
    _scan("max", src, dst, dim, reverse)


def _quantify(kind: str, buffer: Any) -> Expr:
    b = current()
    b.no_parallel(f"T.{kind}_of")
    src = region(buffer, f"the tile of {kind}_of")
    result = b.var(kind, BOOL)
    b.emit(Quantify(kind, src, result))
    return result


def any_of(buffer: Any) -> Expr:
    """Whether any element of a tile or region is nonzero (a bool that all threads know)."""
    return _quantify("any", buffer)


def all_of(buffer: Any) -> Expr:
    """Whether every element of a tile or region is nonzero (a bool that all threads know)."""
    return _quantify("all", buffer)
