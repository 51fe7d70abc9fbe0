"""Tile ops on numpy arrays: what each step of a whole block means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dtypes import BOOL, DType, dtype
from ..errors import KernelError
from ..program import AtomicTile, Copy, Fill, Gemm, Quantify, Reduce, Region, Scan, TileOp, Transpose
from . import scalars
from .evaluate import Lanes

Array = NDArray[Any]


def run(s: TileOp, lanes: Lanes, allowed: Any) -> None:
    """Do one tile op. ``allowed`` is the mask of lanes, which must be full.

    Raises:
        KernelError: only some threads get here, or a region lies outside its tile.
    """
    if not bool(np.all(allowed)):
        raise KernelError(
            "only some threads of the block reach a step of the whole block",
            s.span,
            why="a tile op is done by all threads together",
            help="make the condition the same for all threads",
        )
    match s:
        case Copy():
            source = read(s.src, lanes, clip=True)
            write(s.dst, scalars.convert(source, s.src.dtype, s.dst.dtype), lanes, clip=True)
        case Fill():
            full = np.ones(lanes.count, dtype=np.bool_)
            value = np.asarray(lanes.value(s.value, full)).reshape(-1)[:1].reshape(())
            write(s.dst, np.broadcast_to(value, _extents(s.dst, lanes)), lanes)
        case Transpose():
            write(s.dst, np.swapaxes(read(s.src, lanes), -1, -2), lanes)
        case Gemm():
            gemm(s, lanes)
        case Reduce():
            reduce(s, lanes)
        case Scan():
            scan(s, lanes)
        case AtomicTile():
            value = scalars.convert(read(s.value, lanes, clip=True), s.value.dtype, s.dst.dtype)
            old = read(s.dst, lanes, clip=True)
            write(s.dst, combine(s.op, old, value, s.dst.dtype), lanes, clip=True)
        case Quantify():
            found = read(s.src, lanes)
            truth = scalars.convert(found, s.src.dtype, BOOL)
            lanes.variables[s.result] = np.asarray(truth.any() if s.kind == "any" else truth.all())
        case _:
            raise TypeError(type(s).__name__)


def combine(op: str, old: Array, value: Array, type: DType) -> Array:
    """``old op value`` of an atomic update."""
    return scalars.binary({"add": "+", "or": "|", "and": "&", "xor": "^"}.get(op, op), old, value, type)


def _extents(r: Region, lanes: Lanes) -> tuple[int, ...]:
    return tuple(lanes.number(e) for e in r.extent)


def _box(r: Region, lanes: Lanes) -> tuple[list[int], list[int], tuple[int, ...]]:
    memory = lanes.memory(r.buffer)
    if memory.lanes:
        raise KernelError(
            f"{r.buffer.name} is private to each thread: a tile op cannot work on it", r.span or lanes.place
        )
    return [lanes.number(x) for x in r.start], list(_extents(r, lanes)), memory.data.shape


def _clipped(
    r: Region, lanes: Lanes, clip: bool
) -> tuple[tuple[slice, ...], tuple[slice, ...], tuple[int, ...]]:
    """Slices of the buffer, slices of the tile of that part, and the tile's extents."""
    start, extent, shape = _box(r, lanes)
    inside, part = [], []
    for n, (a, count, size) in enumerate(zip(start, extent, shape, strict=True)):
        low, high = max(a, 0), max(min(a + count, size), max(a, 0))
        if not clip and (a < 0 or a + count > size):
            raise KernelError(
                f"a region reaches from {a} to {a + count} in dimension {n} of {r.buffer.name}, which has size {size}",
                r.span or lanes.place,
            )
        if a >= size:
            low = high = size
        inside.append(slice(low, high))
        part.append(slice(low - a, high - a) if high > low else slice(0, 0))
    return tuple(inside), tuple(part), tuple(extent)


def read(r: Region, lanes: Lanes, *, clip: bool = False) -> Array:
    """The elements of a region in the shape that counts; outside the buffer they are zero if ``clip``, else refused."""
    memory = lanes.memory(r.buffer)
    inside, part, extent = _clipped(r, lanes, clip)
    out = np.zeros(extent, dtype=memory.data.dtype)
    found = memory.data[inside]
    if memory.written is not None and found.size:
        grid = np.meshgrid(*(np.arange(s.start, s.stop) for s in inside), indexing="ij")
        ready = memory.is_written(tuple(grid)) if grid else memory.is_written(())
        if not bool(np.all(ready)):
            raise KernelError(
                f"{r.buffer.name} is read before all of the region is written",
                r.span or lanes.place,
                help="clear or fill the tile first, or read only the part that was written",
            )
    out[part] = found
    return out.reshape(tuple(e for e, p in zip(extent, r.point, strict=True) if not p))


def write(r: Region, value: Array, lanes: Lanes, *, clip: bool = False) -> None:
    """Set the elements of a region; those outside the buffer are dropped if ``clip``, else refused."""
    memory = lanes.memory(r.buffer)
    inside, part, extent = _clipped(r, lanes, clip)
    memory.data[inside] = np.asarray(value).reshape(extent)[part]
    if memory.written is not None:
        grid = np.meshgrid(*(np.arange(s.start, s.stop) for s in inside), indexing="ij")
        memory.mark(tuple(grid))


def gemm(s: Gemm, lanes: Lanes) -> None:
    """Products in float64 (int64 for integers), so that the oracle's rounding is below any backend's."""
    a, b = read(s.a, lanes), read(s.b, lanes)
    a, b = (a.T if s.transpose_a else a), (b.T if s.transpose_b else b)
    work = np.float64 if s.c.dtype.is_float else np.int64
    out = a.astype(np.float32 if s.a.dtype.is_float else work).astype(work) @ b.astype(
        np.float32 if s.b.dtype.is_float else work
    ).astype(work)
    if s.a.dtype.name == "float64":
        out = a.astype(work) @ b.astype(work)
    if not s.clear:
        out = read(s.c, lanes).astype(work) + out
    write(s.c, scalars.convert(out, _wide(s.c.dtype), s.c.dtype), lanes)


def _wide(type: DType) -> DType:
    return dtype("float64" if type.is_float else "uint64" if type.kind == "uint" else "int64")


def _magnitude(value: Array, type: DType) -> Array:
    """Absolute values of ``type`` in its wide type: that of the least integer is itself."""
    if type.is_float or type.is_bool:
        return np.abs(value)
    return scalars.convert(scalars.convert(np.abs(value), _wide(type), type), type, _wide(type))


FOLDS: dict[str, tuple[Callable[..., Array], Callable[[Array, Array], Array]]] = {
    "sum": (np.add.reduce, np.add),
    "abssum": (np.add.reduce, np.add),
    "max": (np.fmax.reduce, np.fmax),
    "min": (np.fmin.reduce, np.fmin),
    "absmax": (np.fmax.reduce, np.fmax),
    "bitand": (np.bitwise_and.reduce, np.bitwise_and),
    "bitor": (np.bitwise_or.reduce, np.bitwise_or),
    "bitxor": (np.bitwise_xor.reduce, np.bitwise_xor),
    "any": (np.logical_or.reduce, np.logical_or),
    "all": (np.logical_and.reduce, np.logical_and),
}

PROPAGATING: dict[str, tuple[Callable[..., Array], Callable[[Array, Array], Array]]] = {
    "max": (np.maximum.reduce, np.maximum),
    "min": (np.minimum.reduce, np.minimum),
    "absmax": (np.maximum.reduce, np.maximum),
}


def reduce(s: Reduce, lanes: Lanes) -> None:
    made_in = s.dst.dtype if s.kind in ("sum", "abssum") or not s.src.dtype.is_float else s.src.dtype
    wide = _wide(made_in)
    value = read(s.src, lanes)
    if made_in != s.src.dtype and not made_in.is_float:
        value = scalars.convert(value, s.src.dtype, made_in)
        value = scalars.convert(value, made_in, wide)
    else:
        value = scalars.convert(value, s.src.dtype, wide)
    if s.kind in ("absmax", "abssum"):
        value = _magnitude(value, made_in)
    fold, join = PROPAGATING[s.kind] if s.propagate_nan and s.kind in PROPAGATING else FOLDS[s.kind]
    if value.shape[s.axis] == 0:
        raise KernelError(f"a reduction over no elements of {s.src.buffer.name}", s.span)
    out = scalars.convert(fold(value, axis=s.axis), wide, _wide(s.dst.dtype))
    shape = tuple(e for e, p in zip(_extents(s.dst, lanes), s.dst.point, strict=True) if not p)
    out = out.reshape(shape)
    if not s.clear:
        old = scalars.convert(read(s.dst, lanes), s.dst.dtype, _wide(s.dst.dtype))
        out = join(old, out)
    write(s.dst, scalars.convert(out, _wide(s.dst.dtype), s.dst.dtype), lanes)


def scan(s: Scan, lanes: Lanes) -> None:
    wide = _wide(s.dst.dtype)
    value = scalars.convert(read(s.src, lanes), s.src.dtype, wide)
    if s.reverse:
        value = np.flip(value, s.axis)
    out = np.cumsum(value, axis=s.axis) if s.kind == "sum" else np.fmax.accumulate(value, axis=s.axis)
    if s.reverse:
        out = np.flip(out, s.axis)
    write(s.dst, scalars.convert(out, wide, s.dst.dtype), lanes)
