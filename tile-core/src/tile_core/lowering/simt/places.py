"""Where an element of a tile is for this thread: a register, or an address in shared memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from ...expr import Buffer, Expr, Load, Space, binary, reads, rebuilt
from ...layout.f2 import BitMap
from ...layout.layout import Axis, Layout
from ...layout.panels import row_major
from .context import Context, coordinate, depends_on, linear_index

Staged = Mapping[Buffer, Buffer]
SLOT_BITS = 1024  # slots of one tile begin at multiples of this


def place(
    context: Context, buffer: Buffer, index: Sequence[Expr], staged: Staged
) -> tuple[Buffer, tuple[Expr, ...]]:
    """The buffer and index that hold ``buffer[index]``. ``staged``: fragments that stand in shared memory for now.

    The register of a fragment's element must be known without the thread's number: ``in_registers`` tells.
    """
    index = tuple(context.simple(i) for i in index)
    match buffer.space:
        case Space.FRAGMENT:
            if buffer.storage in staged:
                return flat_place(context, staged[buffer.storage], buffer, index)
            return context.register_file(buffer.storage), (_register(context, buffer, index),)
        case Space.SHARED if buffer not in context.made:
            return _shared(context, buffer, index)
        case _:
            return buffer, index


def _register(context: Context, buffer: Buffer, index: Sequence[Expr]) -> Expr:
    if buffer.source is not None:
        index = _through_view(context, buffer, index)
    return coordinate(context.layout(buffer), index, Axis.REGISTER, context)


def in_registers(context: Context, buffer: Buffer, index: Sequence[Expr]) -> bool:
    """Whether the register of an element follows from the loops alone."""
    if buffer.storage not in context.layouts or buffer.dtype != buffer.storage.dtype:
        return False
    at = _register(context, buffer, tuple(context.simple(i) for i in index))
    return not depends_on(at, frozenset((context.thread,)))


def _through_view(context: Context, buffer: Buffer, index: Sequence[Expr]) -> tuple[Expr, ...]:
    """The index in the storage of an element of a view of the same type."""
    at = linear_index(index, _static(buffer))
    out: list[Expr] = []
    for extent in reversed(_static(buffer.storage)):
        out.append(context.simple(binary("%", at, extent)))
        at = binary("//", at, extent)
    return tuple(reversed(out))


def _static(buffer: Buffer) -> tuple[int, ...]:
    return tuple(d for d in buffer.shape if isinstance(d, int))


def flat_place(
    context: Context, flat: Buffer, buffer: Buffer, index: Sequence[Expr]
) -> tuple[Buffer, tuple[Expr, ...]]:
    """The place in a flat tile of an element of a tile that lies there row by row, or of a view of it."""
    if buffer.dtype != flat.dtype:
        flat = replace(
            flat, name=buffer.name, shape=(prod(_static(buffer)),), dtype=buffer.dtype, source=flat
        )
    return flat, (context.simple(linear_index(index, _static(buffer))),)


def tile(context: Context, storage: Buffer) -> Buffer:
    """The flat buffer in shared memory that holds a tile, or all slots of it."""
    found = context.tiles.get(storage)
    if found is None:
        depth = context.depths.get(storage, 1)
        size = (
            slot_size(context, storage) * depth if depth > 1 else shared_layout(context, storage).footprint()
        )
        found = replace(storage, shape=(size,), strides=None)
        context.tiles[storage] = found
    return found


def slot_size(context: Context, storage: Buffer) -> int:
    """Elements from one slot of a tile to the next: every slot begins at a whole row of banks, and swizzles alike."""
    layout = shared_layout(context, storage)
    unit = max(SLOT_BITS // storage.dtype.bits, layout.swizzle.window)
    return -(-layout.footprint() // unit) * unit


def shared_layout(context: Context, storage: Buffer) -> Layout:
    """The layout of a shared tile: the plan's, or rows if views must see its bytes in order."""
    layout = context.layouts.get(storage)
    shape = _static(storage)
    if layout is None or storage in context.viewed or layout.replicas:
        return row_major(shape) if shape else row_major((1,))
    return layout


def _shared(context: Context, buffer: Buffer, index: Sequence[Expr]) -> tuple[Buffer, tuple[Expr, ...]]:
    storage = buffer.storage
    flat = tile(context, storage)
    if buffer.source is not None:
        return flat_place(context, flat, buffer, index)
    layout = shared_layout(context, storage)
    at = coordinate(layout, index, Axis.MEMORY, context)
    at = swizzled(at, layout.swizzle)
    return flat, (binary("+", context.slots[storage], at) if storage in context.slots else at,)


def swizzled(at: Expr, swizzle: BitMap) -> Expr:
    """An address after a bit map: runs of bits that are XORed into lower ones become one shift and mask each."""
    extra = [column ^ (1 << j) for j, column in enumerate(swizzle.columns)]
    out, j = at, 0
    while j < len(extra):
        if not extra[j]:
            j += 1
            continue
        run, shift = 1, j - (extra[j].bit_length() - 1)
        single = extra[j] & (extra[j] - 1) == 0
        while single and j + run < len(extra) and extra[j + run] == 1 << (j + run - shift):
            run += 1
        # as // and %, which simplification knows: rows of a power of two leave no carry
        bits = binary("%", binary("//", at, 1 << j), 1 << run)
        moved = binary("*", bits, 1 << (j - shift) if single else extra[j])
        out = binary("^", out, moved)
        j += run
    return binary("^", out, swizzle.constant)


def placed(context: Context, x: Expr, staged: Staged) -> Expr:
    """``x`` with every element of a tile read where it is."""
    if isinstance(x, Load):
        index = tuple(placed(context, i, staged) for i in x.indices)
        buffer, at = place(context, x.buffer, index, staged)
        return replace(x, buffer=buffer, indices=at)
    if not reads(x):
        return context.simple(x)
    return rebuilt(x, lambda e: placed(context, e, staged))
