"""Values that change hands: fragments written to shared memory by their holders, and read back by them."""

from __future__ import annotations

from collections.abc import Sequence

from ...expr import Buffer, Expr, Load
from ...layout.layout import Axis, Layout
from ...program import Stmt, Store
from ...span import Span
from .context import Context, coordinate, linear_index
from .nest import iterations
from .places import place


def store_out(context: Context, fragment: Buffer, into: Buffer, span: Span | None) -> tuple[Stmt, ...]:
    """All holders of a fragment write their elements, row-major, to a flat shared tile."""
    layout = context.layout(fragment)
    return _held(
        context, fragment, layout, lambda regs, r, at: Store(into, (at,), Load(regs, (r,)), span=span), span
    )


def load_back(context: Context, fragment: Buffer, source: Buffer, span: Span | None) -> tuple[Stmt, ...]:
    """All holders of a fragment read their elements from a flat shared tile."""
    layout = context.layout(fragment)
    return _held(
        context, fragment, layout, lambda regs, r, at: Store(regs, (r,), Load(source, (at,)), span=span), span
    )


def _held(context: Context, fragment: Buffer, layout: Layout, make, span: Span | None) -> tuple[Stmt, ...]:
    shape = _static(fragment)
    mine = iterations(context, layout, shape)
    regs = context.register_file(fragment)
    r = coordinate(layout, mine.index, Axis.REGISTER, context)
    at = context.simple(linear_index(mine.index, shape))
    return mine.around((make(regs, r, at),), span)


def _static(buffer: Buffer) -> tuple[int, ...]:
    return tuple(d for d in buffer.shape if isinstance(d, int))


def element(context: Context, buffer: Buffer, index: Sequence[Expr]) -> Expr:
    """An element that this thread can reach."""
    where, at = place(context, buffer, index, {})
    return Load(where, at)
