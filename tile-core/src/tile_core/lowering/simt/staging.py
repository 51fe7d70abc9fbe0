"""Values that change hands: fragments written to shared memory by their holders, and read back by them."""

from __future__ import annotations

from collections.abc import Sequence

from ...expr import Buffer, Expr, Load
from ...layout.layout import Axis
from ...program import Stmt, Store
from ...span import Span
from .context import Context, coordinate, linear_index
from .nest import Iterations, iterations
from .places import place


def store_out(context: Context, fragment: Buffer, into: Buffer, span: Span | None) -> tuple[Stmt, ...]:
    """All holders of a fragment write their elements, row-major, to a flat shared tile."""
    mine, registers, at = _held(context, fragment)
    return mine.around((Store(into, (at,), registers, span=span),), span)


def load_back(context: Context, fragment: Buffer, source: Buffer, span: Span | None) -> tuple[Stmt, ...]:
    """All holders of a fragment read their elements from a flat shared tile."""
    mine, registers, at = _held(context, fragment)
    back = Store(registers.buffer, registers.indices, Load(source, (at,)), span=span)
    return mine.around((back,), span)


def _held(context: Context, fragment: Buffer) -> tuple[Iterations, Load, Expr]:
    """This thread's elements of a fragment: the nest over them, the register of one, its row-major place in the tile."""
    layout, shape = context.layout(fragment), _static(fragment)
    mine = iterations(context, layout, shape)
    register = coordinate(layout, mine.index, Axis.REGISTER, context)
    at = context.simple(linear_index(mine.index, shape))
    return mine, Load(context.register_file(fragment), (register,)), at


def _static(buffer: Buffer) -> tuple[int, ...]:
    return tuple(d for d in buffer.shape if isinstance(d, int))


def element(context: Context, buffer: Buffer, index: Sequence[Expr]) -> Expr:
    """An element that this thread can reach."""
    where, at = place(context, buffer, index, {})
    return Load(where, at)
