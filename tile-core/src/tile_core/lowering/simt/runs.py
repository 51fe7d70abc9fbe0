"""Runs of elements that one wide access can take: a region of a shared tile or of a tensor in, whether they are aligned out."""

from __future__ import annotations

from ...expr import Buffer
from ...inference.indices import divisor
from ...layout.layout import Axis, Iter, Layout, grouped
from ...program import Region
from .context import Context
from .places import shared_layout


def runs_aligned(context: Context, region: Region, dim: int, chunk: int) -> bool:
    """Whether ``chunk`` elements along a dimension of a region lie side by side in shared memory, aligned to their length.

    The runs are those that begin at multiples of ``chunk``, a power of two. ``dim`` counts the dimensions that are not points.
    """
    buffer = region.buffer
    kept = [n for n, point in enumerate(region.point) if not point]
    layout = _memory(context, buffer)
    groups = None if layout is None else grouped(layout)
    if layout is None or groups is None:
        return False
    at = kept[dim]
    run, rest = _run(groups[at], chunk)
    others = [it for n, group in enumerate(groups) if n != at for it in group] + rest
    aligned = all(it.extent == 1 or it.stride % chunk == 0 for it in others)
    start = divisor(region.start[at]) % chunk == 0 and layout.base(Axis.MEMORY) % chunk == 0
    return run % chunk == 0 and aligned and start and layout.swizzle.keeps_low(chunk.bit_length() - 1)


def _memory(context: Context, buffer: Buffer) -> Layout | None:
    """How a shared tile lies in memory; None for views, which have another shape than what they see."""
    if buffer.source is not None or buffer.static_shape is None:
        return None
    return shared_layout(context, buffer)


def _run(group: tuple[Iter, ...], chunk: int) -> tuple[int, list[Iter]]:
    """How many neighbours along a dimension lie side by side, and the digits above them."""
    run = 1
    digits = list(group)
    while digits and run % chunk and digits[-1].axis is Axis.MEMORY and digits[-1].stride == run:
        run *= digits.pop().extent
    return run, digits
