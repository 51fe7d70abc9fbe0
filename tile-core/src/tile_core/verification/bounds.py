"""Whether every access stays inside its buffer: takes a program, gives one obligation for each index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from ..errors import KernelError
from ..expr import Binary, Buffer, Const, Expr, Load, Select, Space, Var, children, const, expr, text
from ..expr.affine import Linear
from ..expr.intervals import interval
from ..graph.boxes import steady
from ..program import (
    Assume,
    Atomic,
    AtomicTile,
    Copy,
    For,
    If,
    Launch,
    Parallel,
    Region,
    Stmt,
    Store,
    TileProgram,
)
from ..program.facts import divided
from ..program.visit import bodies, expressions, read_regions, written_regions
from ..span import Span
from .comparisons import Known, never_above
from .witness import Witness, outside


class Status(str, Enum):
    """``guard_needed``: it may leave the buffer, so code must check it. ``violated``: it surely does."""

    PROVED = "proved"
    GUARD_NEEDED = "guard_needed"
    VIOLATED = "violated"


@dataclass(frozen=True, slots=True)
class Obligation:
    """Index number ``dim`` of an access of ``buffer`` lies in ``[0, extent)``. ``witness``: where it surely does not."""

    status: Status
    buffer: Buffer
    dim: int
    reason: str
    span: Span | None = None
    statement: Stmt | None = None
    witness: Witness | None = None


def prove_in_bounds(program: TileProgram) -> list[Obligation]:
    """One obligation for each dimension of each access, in program order."""
    return list(_of_body(program.body, Known()))


def refuse_violations(program: TileProgram) -> None:
    """Check that no access surely leaves its buffer.

    Raises:
        KernelError: one does; the message names the buffer, the dimension and both ranges.
    """
    for o in prove_in_bounds(program):
        if o.status is Status.VIOLATED:
            raise left(o)


def left(o: Obligation) -> KernelError:
    """The error of an index that leaves its buffer, with values for which it does."""
    w = o.witness
    values = "" if w is None else ", ".join(f"{name} = {n}" for name, n in w.values.items())
    where = "" if w is None else f"; {f'with {values} ' if values else ''}it is {w.index} of {w.extent}"
    return KernelError(
        f"dimension {o.dim} of {o.buffer.name} is left: {o.reason}{where}",
        o.span,
        why="an access outside a buffer reads or destroys something else",
        help="change the range, or make the tile as large as what is put into it",
    )


def _of_body(body: Sequence[Stmt], known: Known) -> Iterator[Obligation]:
    for s in body:
        yield from _of(s, known)
        if isinstance(s, Assume):
            known = assumed(known, s)


def assumed(known: Known, s: Assume) -> Known:
    """What is known after an assumption."""
    return known.having({}, tuple(_facts(s.condition, True)), dict(divided(s.condition)))


def _of(s: Stmt, known: Known) -> Iterator[Obligation]:
    # tensors may be copied beyond their end: what is outside reads as zero and is not written
    padded = isinstance(s, Copy | AtomicTile)
    for r in dict.fromkeys((*read_regions(s), *written_regions(s))):
        yield from _region(r, known, padded and r.buffer.space is Space.GLOBAL, s)
    inner = known.having(dict(ranges_of(s)))
    for x in expressions(s):
        yield from _loads(x, known, s)
    if isinstance(s, Store | Atomic):
        yield from _indices(s.buffer, s.indices, known, s, s.span)
    if isinstance(s, If):
        yield from _of_body(s.then, known.having({}, tuple(_facts(s.condition, True))))
        yield from _of_body(s.other, known.having({}, tuple(_facts(s.condition, False))))
        return
    for body in bodies(s):
        yield from _of_body(body, inner)


def ranges_of(s: Stmt) -> Iterator[tuple[Var, tuple[Expr, Expr]]]:
    """First and last value of the variables that a statement gives its body."""
    zero = const(0)
    match s:
        case Parallel():
            yield from ((v, (zero, expr(e) - 1)) for v, e in zip(s.vars, s.extents, strict=True))
        case For() if s.var is not None:
            last = s.start + (expr(s.extent) - 1) * s.step
            yield s.var, (s.start, last) if s.step > 0 else (last, s.start)
        case Launch():
            yield from ((v, (zero, expr(e) - 1)) for v, e in zip(s.vars, s.grid, strict=True))
            yield from ((v, (zero, const(n - 1))) for v, n in zip(s.thread_vars, s.threads, strict=False))
        case _:
            return


def _facts(condition: Expr, holds: bool) -> Iterator[Linear]:
    """Sums that are at most zero where the condition holds, or where it does not."""
    match condition:
        case Binary(op="and") if holds:
            yield from _facts(condition.a, True)
            yield from _facts(condition.b, True)
        case Binary(op="<" | "<=" | ">" | ">=" as op) if condition.a.dtype.is_integer:
            upward = (op in ("<", "<=")) == holds  # a < b, or not a >= b
            small, large = (condition.a, condition.b) if upward else (condition.b, condition.a)
            strict = (op in ("<", ">")) == holds
            less, more = steady(small), steady(large)
            if less is not None and more is not None:
                yield less.plus(more, -1).plus(Linear(1 if strict else 0))
        case _:
            return


def _loads(x: Expr, known: Known, s: Stmt) -> Iterator[Obligation]:
    """Loads of an expression; one side of a select is only reached where its condition says so."""
    work = [(x, known)]  # sums of unrolled loops are deeper than Python may call itself
    while work:
        x, known = work.pop()
        if isinstance(x, Select) and x.lazy:
            sides = ((x.other, False), (x.then, True))
            work += ((y, known.having({}, tuple(_facts(x.condition, holds)))) for y, holds in sides)
            work.append((x.condition, known))
            continue
        if isinstance(x, Load):
            yield from _indices(x.buffer, x.indices, known, s, x.span or s.span)
        work += ((inner, known) for inner in reversed(tuple(children(x))))


def _indices(
    buffer: Buffer, indices: Sequence[Expr], known: Known, s: Stmt, span: Span | None
) -> Iterator[Obligation]:
    for dim, (i, extent) in enumerate(zip(indices, buffer.shape, strict=True)):
        yield _judged(buffer, dim, i, i, extent, known, False, s, span)


def _region(r: Region, known: Known, padded: bool, s: Stmt) -> Iterator[Obligation]:
    for dim, (start, size, extent) in enumerate(zip(r.start, r.extent, r.buffer.shape, strict=True)):
        last = start + (expr(size) - 1)
        yield _judged(r.buffer, dim, start, last, extent, known, padded, s, r.span or s.span)


def _judged(
    buffer: Buffer,
    dim: int,
    first: Expr,
    last: Expr,
    extent: int | Expr,
    known: Known,
    padded: bool,
    s: Stmt,
    span: Span | None,
) -> Obligation:
    """The obligation ``0 <= first`` and ``last < extent``. ``padded``: leaving the buffer in part is allowed."""
    top = expr(extent) - 1
    if never_above(const(0), first, known) and never_above(last, top, known):
        return Obligation(Status.PROVED, buffer, dim, "", span, s)
    lows, highs, size = interval(first, known.of), interval(last, known.of), interval(top, known.of)
    shown = f"{text(first)} to {text(last)}" if first is not last else text(first)
    reason = f"{shown} is not always in 0 to {text(top)}"
    beyond = (lows.low is not None and size.high is not None and lows.low > size.high) or (
        highs.high is not None and highs.high < 0
    )
    partly = (
        (isinstance(first, Const) and isinstance(last, Const) and size.high is not None)
        and not padded
        and (first.value < 0 or last.value > size.high)
    )
    if not (beyond or partly):
        return Obligation(Status.GUARD_NEEDED, buffer, dim, reason, span, s)
    return Obligation(Status.VIOLATED, buffer, dim, reason, span, s, outside(first, last, top, known))
