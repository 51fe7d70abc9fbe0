"""Atomic updates of single elements and of whole tiles."""

from __future__ import annotations

from typing import Any

from ..errors import KernelError
from ..expr import Load, Var, cast, const
from ..program import Atomic, AtomicTile
from .builder import current
from .movement import paired, region
from .tiles import Tile, View

ORDERS = ("relaxed", "acquire", "release", "acq_rel", "seq_cst")


def _atomic(op: str, dst: Any, value: Any, memory_order: str | None, return_prev: bool) -> Any:
    b = current()
    order = memory_order or "relaxed"
    if order not in ORDERS:
        raise KernelError(f"no memory order is called {order!r}", help=f"it is one of {', '.join(ORDERS)}")
    if isinstance(value, (Tile, View)) and value.shape:
        if return_prev:
            raise KernelError("return_prev is for single elements, not for tiles")
        b.no_parallel("an atomic update with a tile")
        source, target = paired(
            region(value, "the value"), region(dst, "the target of an atomic"), b, f"atomic_{op}"
        )
        b.emit(AtomicTile(op, target, source, order))
        return None
    place = dst if isinstance(dst, Load) else _element(dst)
    if op in ("or", "and", "xor") and not place.dtype.is_integer:
        raise KernelError(f"atomic_{op} works on integers, {place.buffer.name} is {place.dtype}")
    result = b.var("previous", place.dtype) if return_prev else None
    b.emit(Atomic(op, place.buffer, place.indices, cast(value, place.dtype), order, result))
    return result


def _element(dst: Any) -> Load:
    if isinstance(dst, Tile) and all(d == 1 for d in dst.shape):
        return Load(dst.buffer, (const(0),) * dst.ndim)
    raise KernelError(
        "the target of an atomic with a single value is a single element",
        help="index it: T.atomic_add(C[i, j], value), or pass a tile as the value",
    )


def atomic_add(
    dst: Any, value: Any, memory_order: str | None = None, return_prev: bool = False, use_tma: bool = False
) -> Any:
    """``dst += value`` atomically: an element and a value, or a region and a tile of the same shape.

    With ``return_prev`` gives the element's value before (elements only). ``use_tma`` is a hint. Float sums of many
    blocks come in no fixed order.

    Raises:
        KernelError: shapes that differ, an unknown memory order.
    """
    del use_tma
    return _atomic("add", dst, value, memory_order, return_prev)


def atomic_max(dst: Any, value: Any, memory_order: str | None = None, return_prev: bool = False) -> Any:
    """``dst = max(dst, value)`` atomically. See ``atomic_add``."""
    return _atomic("max", dst, value, memory_order, return_prev)


def atomic_min(dst: Any, value: Any, memory_order: str | None = None, return_prev: bool = False) -> Any:
    """``dst = min(dst, value)`` atomically. See ``atomic_add``."""
    return _atomic("min", dst, value, memory_order, return_prev)


def atomic_or(dst: Any, value: Any, memory_order: str | None = None, return_prev: bool = False) -> Any:
    """``dst |= value`` atomically, of integers. See ``atomic_add``."""
    return _atomic("or", dst, value, memory_order, return_prev)


def atomic_and(dst: Any, value: Any, memory_order: str | None = None, return_prev: bool = False) -> Any:
    """``dst &= value`` atomically, of integers. See ``atomic_add``."""
    return _atomic("and", dst, value, memory_order, return_prev)


def _packed(dst: Any, value: Any, lanes: int) -> None:
    """Element-wise on ``lanes`` neighbours along the last dimension; a target may use one wide instruction."""
    if not isinstance(dst, Load) or not isinstance(value, Load):
        raise KernelError(
            f"atomic_addx{lanes} takes the first of {lanes} neighbouring elements on both sides"
        )
    b = current()
    for n in range(lanes):
        at = (*dst.indices[:-1], dst.indices[-1] + n)
        part = Load(value.buffer, (*value.indices[:-1], value.indices[-1] + n), span=value.span)
        b.emit(Atomic("add", dst.buffer, at, cast(part, dst.dtype)))


def atomic_addx2(dst: Any, value: Any, return_prev: bool = False) -> None:
    """``dst[..., j:j+2] += value[..., j:j+2]``, each element atomically; both are given by their first element."""
    _no_previous(return_prev)
    _packed(dst, value, 2)


def atomic_addx4(dst: Any, value: Any, return_prev: bool = False) -> None:
    """``dst[..., j:j+4] += value[..., j:j+4]``, each element atomically; both are given by their first element."""
    _no_previous(return_prev)
    _packed(dst, value, 4)


def _no_previous(return_prev: bool) -> None:
    if return_prev:
        raise KernelError("the packed atomics give no previous value")


def atomic_load(src: Any, memory_order: str = "seq_cst") -> Var:
    """The value of an element, read atomically."""
    b = current()
    place = src if isinstance(src, Load) else _element(src)
    result = b.var("loaded", place.dtype)
    b.emit(Atomic("load", place.buffer, place.indices, None, memory_order, result))
    return result


def atomic_store(dst: Any, value: Any, memory_order: str = "seq_cst") -> None:
    """Write an element atomically."""
    b = current()
    place = dst if isinstance(dst, Load) else _element(dst)
    b.emit(Atomic("store", place.buffer, place.indices, cast(value, place.dtype), memory_order))
