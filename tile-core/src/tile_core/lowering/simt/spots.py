"""Where an element lies in memory, as sums: says how many elements along a loop follow each other, aligned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from ...expr import Buffer, Expr, Space, Var, reads, substitute
from ...expr.affine import Linear
from ...layout.f2 import BitMap
from ...layout.layout import Axis
from .conditions import depends
from .context import Context, coordinate_form
from .places import flat_place, shared_layout, swizzled, tile


@dataclass(frozen=True)
class Spot:
    """An element of ``buffer``, a tensor or a flat tile. ``sums``: of each index, the stride (in elements) it has.

    ``swizzle`` acts on the one sum of a tile.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    sums: tuple[tuple[Linear, int | Expr], ...]
    swizzle: BitMap = BitMap()

    def run(self, context: Context, var: Var, extent: int) -> int:
        """How many elements follow each other as ``var`` counts, beginning at multiples of that number; a power of two."""
        count = extent
        along = 0
        for form, stride in self.sums:
            step = form.terms.get(var, 0)
            if any(t != var and depends(t, var) for t in form.terms):
                return 1
            if step:
                along += step * stride if isinstance(stride, int) else 2
                form = form.plus(Linear(0, {var: 1}), -step)
            by = stride if isinstance(stride, int) else context.divisor(context.form(stride))
            count = gcd(count, context.divisor(form) * by)
        if along != 1:
            return 1
        count &= -count
        while count > 1 and not self.swizzle.keeps_low(count.bit_length() - 1):
            count //= 2
        return count

    def at(self, context: Context, var: Var, start: Expr) -> tuple[Expr, ...]:
        """The index of the element for one value of ``var``."""
        if self.buffer.space is Space.GLOBAL:
            return tuple(context.simple(substitute(i, {var: start})) for i in self.indices)
        ((form, _),) = self.sums
        step = form.terms.get(var, 0)
        moved = form.plus(Linear(0, {var: 1}), -step).plus(context.form(start), step)
        return (swizzled(context.sum(moved), self.swizzle),)


def spot(
    context: Context, buffer: Buffer, index: Sequence[Expr], staged: Mapping[Buffer, Buffer]
) -> Spot | None:
    """The place of an element; None for what is in registers, below a byte in size, or found through memory."""
    if (
        any(reads(i) for i in index)
        or buffer.dtype.lanes > 1
        or (buffer.dtype.bits < 8 and not buffer.dtype.is_bool)
    ):
        return None
    match buffer.space:
        case Space.FRAGMENT if buffer.storage in staged:
            return _flat(context, *flat_place(context, staged[buffer.storage], buffer, index))
        case Space.SHARED if buffer in context.made:
            return _flat(context, buffer, tuple(index))
        case Space.SHARED if buffer.source is not None:
            return _flat(context, *flat_place(context, tile(context, buffer.storage), buffer, index))
        case Space.SHARED:
            layout = shared_layout(context, buffer)
            form = coordinate_form(layout, index, Axis.MEMORY, context)
            if buffer in context.slots:
                form = form.plus(context.form(context.slots[buffer]))
            return Spot(tile(context, buffer), (), ((form, 1),), layout.swizzle)
        case Space.GLOBAL if buffer.storage.base is None:
            strides = buffer.row_major_strides()
            sums = tuple((context.form(i), s) for i, s in zip(index, strides, strict=True))
            return Spot(buffer, tuple(index), sums)
        case _:
            return None


def _flat(context: Context, flat: Buffer, index: tuple[Expr, ...]) -> Spot | None:
    return Spot(flat, index, ((context.form(index[0]), 1),)) if len(index) == 1 else None
