"""Copies whose threads write side by side: a shared tile in, which element of it each thread copies out.

The tile is gone through by addresses, and the element at an address is that which the tile's layout puts there. So any layout will
do that puts each element at one address and leaves no gap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from ...expr import Buffer, Expr, Var, binary, const
from ...layout.layout import Axis, Iter, Layout, grouped
from ...program import For, Place, Stmt
from .context import Context
from .places import shared_layout, swizzled, tile

Around = Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]


def rounds(context: Context, run: int, storage: Buffer, elements: int) -> int:
    """How many pieces of ``elements`` each thread copies so that runs of threads fill the tile; 0: they cannot."""
    layout = shared_layout(context, storage)
    round = context.threads * elements
    # whole rounds: all runs start as many copies, and no two of them write one place, which nothing would order
    if context.threads % run or prod(layout.shape) % round or not _gapless(layout):
        return 0
    return prod(layout.shape) // round


def _gapless(layout: Layout) -> bool:
    """Whether the digits of an address are the digits of the elements."""
    if layout.padded or layout.replicas or layout.base(Axis.MEMORY) or grouped(layout) is None:
        return False
    size = 1
    for it in sorted(layout.on(Axis.MEMORY), key=lambda i: i.stride):
        if it.stride != size:
            return False
        size *= it.extent
    return size == prod(layout.shape) == layout.footprint()


def beside(
    context: Context, run: int, storage: Buffer, elements: int
) -> tuple[tuple[Expr, ...], Place, Around]:
    """The first element of this thread's piece, the place of the run's first piece, and the loop around a round's copy."""
    layout = shared_layout(context, storage)
    chunk, count = run * elements, rounds(context, run, storage, elements)
    runs = context.threads // run
    round: Expr = context.var("c", count) if count > 1 else const(0)
    number = binary("+", binary("*", round, runs), binary("//", context.thread, run))
    first = context.simple(binary("*", number, chunk))
    mine = binary("+", first, binary("*", binary("%", context.thread, run), elements))
    at = swizzled(context.simple(mine), layout.swizzle.inverse())
    slot = context.slots.get(storage)
    place = first if slot is None else binary("+", slot, first)
    index = tuple(context.simple(i) for i in _index(layout, at))

    def around(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return (For(round, const(0), count, body, "unroll"),) if isinstance(round, Var) else body

    return index, Place(tile(context, storage), (place,), "w", window=True), around


def _index(layout: Layout, at: Expr) -> Sequence[Expr]:
    """The element at an address, by digits."""
    out: list[Expr] = []
    for group in grouped(layout) or ():
        place = prod(it.extent for it in group)
        sum: Expr = const(0)
        for it in group:
            place //= it.extent
            sum = binary("+", sum, binary("*", _digit(at, it), place))
        out.append(sum)
    return out


def _digit(at: Expr, it: Iter) -> Expr:
    return const(0) if it.extent == 1 else binary("%", binary("//", at, it.stride), it.extent)
