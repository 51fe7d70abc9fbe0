"""Matrix products on an asynchronous engine: a gemm as a task for it, and what its accumulators need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from ...expr import Buffer, Expr, Space, binary, const
from ...inference.alone import begins
from ...program import Gemm, Place, Region, Stmt
from .boxes import MatrixTask, Operand
from .context import Context
from .instructions import BulkEngines


def product(
    context: Context,
    op: str,
    s: Gemm,
    group: Expr,
    accumulate: Expr,
    sums: Expr | None = None,
    arriving: Mapping[int, tuple[Stmt, ...]] | None = None,
) -> MatrixTask:
    """The task of a gemm. Tiles in rings are read in the slot of ``context.slots``; ``sums`` and
    ``arriving`` as in the task.
    """
    choice = context.plan.atoms[op]
    m, n = choice.c.shape
    k = s.a.shape[0 if s.transpose_a else 1]
    assert isinstance(k, int)
    c = Operand(context.register_file(s.c.buffer), const(0), choice.c, held=True)
    a, b = _operand(context, s.a, s.transpose_a), _operand(context, s.b, s.transpose_b)
    if a.held and choice.a is not None:
        a = replace(a, layout=choice.a)
    number = context.unique("product")
    return MatrixTask(choice, (m, n, k), a, b, c, group, accumulate, number, sums, arriving or {})


def _operand(context: Context, r: Region, transposed: bool) -> Operand:
    storage, layout = r.buffer.storage, context.layout(r.buffer)
    if r.buffer.space is Space.FRAGMENT:
        return Operand(context.register_file(r.buffer), const(0), layout, transposed, True)
    at = begins(layout, r)
    assert at is not None, "inference gives the engine no other parts"
    first = (
        binary("+", context.slots.get(storage, const(0)), at) if at else context.slots.get(storage, const(0))
    )
    return Operand(context.tiles[storage], first, layout, transposed)


def accumulator(context: Context, c: Buffer) -> tuple[Place, int]:
    """The registers of an accumulator and how many."""
    file = context.register_file(c)
    return Place(file, (const(0),), "rw"), prod(d for d in file.shape if isinstance(d, int))


def hold(context: Context, engines: BulkEngines, c: Buffer) -> Stmt:
    place, count = accumulator(context, c)
    return engines.hold(place, count, c.dtype)


def zero(context: Context, engines: BulkEngines, c: Buffer) -> Stmt:
    place, count = accumulator(context, c)
    return engines.zero(place, count, c.dtype)
