"""Matrix products on an asynchronous engine: which ones it can do, and a gemm as a task for it."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ...expr import Buffer, Expr, Space, const
from ...inference.model import GemmChoice
from ...inference.plan import TilePlan
from ...inference.rules.gemm import flipped
from ...layout.layout import Layout
from ...program import Gemm, Place, Region, Stmt
from .boxes import MatrixTask, Operand
from .context import Context
from .instructions import BulkEngines


def on_engine(plan: TilePlan, op: str, s: Gemm) -> bool:
    """Whether the matrix engine can do a gemm by itself: operands are whole tiles where and as it reads them."""
    choice = plan.atoms.get(op)
    if (
        plan.info.bulk is None
        or choice is None
        or choice.atom is None
        or choice.atom.threads != plan.info.bulk.group
    ):
        return False
    if not s.c.whole or plan.layouts.get(s.c.buffer) != choice.c or choice.c.padded:
        return False
    if s.b.buffer.space is not Space.SHARED or not _readable(plan, s.b):
        return False
    if s.a.buffer.space is Space.SHARED:
        return choice.atom.shared_a and _readable(plan, s.a)
    return (
        s.a.whole and s.a.buffer.space is Space.FRAGMENT and plan.layouts.get(s.a.buffer) == _held(choice, s)
    )


def _held(choice: GemmChoice, s: Gemm) -> Layout | None:
    return flipped(choice.a) if s.transpose_a and choice.a is not None else choice.a


def _readable(plan: TilePlan, r: Region) -> bool:
    """A whole tile of two dimensions with a layout of its own."""
    layout = plan.layouts.get(r.buffer)
    return (
        r.whole
        and r.buffer.source is None
        and layout is not None
        and len(layout.shape) == 2
        and not layout.padded
    )


def product(context: Context, op: str, s: Gemm, group: Expr, accumulate: Expr) -> MatrixTask:
    """The task of a gemm. Tiles in rings are read in the slot of ``context.slots``."""
    choice = context.plan.atoms[op]
    m, n = choice.c.shape
    k = s.a.shape[0 if s.transpose_a else 1]
    assert isinstance(k, int)
    c = Operand(context.register_file(s.c.buffer), const(0), choice.c, held=True)
    a, b = _operand(context, s.a, s.transpose_a), _operand(context, s.b, s.transpose_b)
    if a.held and choice.a is not None:
        a = replace(a, layout=choice.a)
    return MatrixTask(choice, (m, n, k), a, b, c, group, accumulate)


def _operand(context: Context, r: Region, transposed: bool) -> Operand:
    storage, layout = r.buffer.storage, context.layout(r.buffer)
    if r.buffer.space is Space.FRAGMENT:
        return Operand(context.register_file(r.buffer), const(0), layout, transposed, True)
    return Operand(context.tiles[storage], context.slots.get(storage, const(0)), layout, transposed)


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
