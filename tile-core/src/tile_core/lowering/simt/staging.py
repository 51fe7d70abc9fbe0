"""Values that change hands: fragments written to shared memory by their holders, and read back by them."""

from __future__ import annotations

from ...expr import Buffer, Load
from ...program import Stmt, Store
from ...span import Span
from .context import Context, linear_index
from .loops import Loop, iterated
from .nest import iterations


def store_out(context: Context, fragment: Buffer, into: Buffer, span: Span | None) -> tuple[Stmt, ...]:
    """All holders of a fragment write their elements, row-major, to a flat shared tile."""
    return _moved(context, fragment, into, True, span)


def load_back(context: Context, fragment: Buffer, source: Buffer, span: Span | None) -> tuple[Stmt, ...]:
    """All holders of a fragment read their elements from a flat shared tile."""
    return _moved(context, fragment, source, False, span)


def _moved(
    context: Context, fragment: Buffer, flat: Buffer, out: bool, span: Span | None
) -> tuple[Stmt, ...]:
    layout, shape = context.layout(fragment), tuple(d for d in fragment.shape if isinstance(d, int))
    vars = tuple(context.var("i", n) for n in shape)
    at = (linear_index(vars, shape),)
    body = (
        Store(flat, at, Load(fragment, vars), span=span)
        if out
        else Store(fragment, vars, Load(flat, at), span=span)
    )
    mine = iterations(context, layout, shape)
    values = dict(zip(vars, mine.index, strict=True))
    return iterated(context, Loop(fragment.name, vars, shape, (body,), span), mine, {}, values)
