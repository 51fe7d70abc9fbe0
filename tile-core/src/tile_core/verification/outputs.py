"""Whether the blocks of a launch write each element of a tensor once: takes a program and a tensor, gives what is not sure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..expr import Binary, Buffer, Const, Expr, Var, ceildiv, const, dim, substitute, text
from ..expr.affine import Linear
from ..expr.intervals import Interval
from ..expr.simplify import formed, summed
from ..program import (
    Atomic,
    AtomicTile,
    Bind,
    Copy,
    For,
    If,
    Launch,
    Parallel,
    Stmt,
    Store,
    TileProgram,
    While,
)
from ..program.visit import read_buffers, statements, written_buffers
from ..span import Span
from .certificates import Certificates
from .clash import Clash
from .elsewhere import exclusive_elsewhere
from .solver import usable

Extent = int | Expr
Part = tuple[Expr, Extent, Extent]  # first element, how many, of how many, in one dimension
ATOMIC = "it is updated atomically"
ALL = "each element by one block, once"
SOME = "no element by two blocks (z3)"
CONDITION = "it is written under conditions"


@dataclass(frozen=True, slots=True)
class Covered:
    """``missing``: why it is not sure that no two blocks write one element; "" if it is. ``how``: why it is. ``clash``: two that
    do, or might. ``span``: a statement that writes it.
    """

    missing: str = ""
    how: str = ""
    clash: Clash | None = None
    span: Span | None = None


def covered(program: TileProgram, b: Buffer, kept: Certificates | None = None) -> Covered:
    """Whether each element of ``b`` is written by one block of a launch alone, and if all are.

    ``kept``: where questions to the solver are written.
    """
    found = list(_writes(program.body, b))
    if not found:
        return Covered("nothing writes it")
    hows: list[str] = []
    for launch in dict.fromkeys(id(x) for _, around in found for x in around if isinstance(x, Launch)):
        own = [(s, around) for s, around in found if any(id(x) == launch for x in around)]
        reason = _whole(*own[0], b) if len(own) == 1 else f"{len(own)} statements write it"
        if reason == ATOMIC:
            return Covered(ATOMIC)
        if not reason:
            hows.append(ALL)
        elif (clash := exclusive(own, b, kept)) is True:
            hows.append(SOME + _given(own))
        else:
            return Covered(reason, clash=clash or None, span=_written_at(own[-1][0], b))
    return Covered(how=next((h for h in hows if h != ALL), ALL))


def exclusive(
    own: Sequence[tuple[Stmt, tuple[Stmt, ...]]], b: Buffer, kept: Certificates | None
) -> Clash | bool | None:
    """True if z3 shows that no two blocks write one element; else two that do or might, if it finds some."""
    if not usable():
        return exclusive_elsewhere(own, b)
    from .exclusive import by_one_block, writes

    (launch,) = {id(x): x for _, around in own for x in around if isinstance(x, Launch)}.values()
    written = [writes(s, around, b) for s, around in own]
    return by_one_block(launch, b, [w for w in written if w], kept) if all(written) else None


def _written_at(s: Stmt, b: Buffer) -> Span | None:
    """The place of what writes a tensor in a statement."""
    return next((t.span for t in statements((s,)) if b in written_buffers(t)), s.span)


def _given(own: Sequence[tuple[Stmt, tuple[Stmt, ...]]]) -> str:
    """What the proof takes for granted of tensors, in words."""
    stmts = statements(x for _, around in own for x in around)
    tensors = {b.name for s in stmts for b in read_buffers(s) if b.distinct}
    return "".join(f"; given: the elements of {name} differ" for name in sorted(tensors))


def _whole(s: Stmt, around: tuple[Stmt, ...], b: Buffer) -> str:
    """Why it is not sure that one statement writes every element, each in one block; "" if it does."""
    launches = [x for x in around if isinstance(x, Launch)]
    loops = [x for x in around if isinstance(x, For)]
    if len(launches) != 1 or len(launches) + len(loops) != len(around):
        return CONDITION
    if any(
        not isinstance(f.start, Const) or f.start.value != 0 or f.step != 1 or f.var is None for f in loops
    ):
        return "it is written in a loop that does not count from 0"
    match s:
        case Copy():
            parts = list(zip(s.dst.start, s.dst.extent, s.dst.buffer.shape, strict=True))
            return _tiled(launches[0], loops, parts)
        case Parallel():
            found_rows = _rows(s, b)
            return found_rows if isinstance(found_rows, str) else _tiled(launches[0], loops, found_rows)
        case Atomic() | AtomicTile():
            return ATOMIC
        case _:
            return "it is written by single elements"


def _writes(
    body: Sequence[Stmt], b: Buffer, around: tuple[Stmt, ...] = ()
) -> Iterator[tuple[Stmt, tuple[Stmt, ...]]]:
    """Statements that write the tensor, and what stands around each."""
    for s in body:
        match s:
            case Launch() | For() | While():
                yield from _writes(s.body, b, (*around, s))
            case If():
                yield from _writes((*s.then, *s.other), b, (*around, s))
            case _ if any(w.storage is b.storage for t in statements((s,)) for w in written_buffers(t)):
                yield s, around
            case _:
                pass


def _rows(s: Parallel, b: Buffer) -> list[Part] | str:
    """A loop that stores to ``start + index`` of each of its indices, up to the tensor's end; or why it is none."""
    binds = {x.var: x.value for x in s.body if isinstance(x, Bind)}
    store, conditions = s.body[-1], list[Expr]()
    while isinstance(store, If) and not store.other and len(store.then) == 1:
        conditions.append(store.condition)
        store = store.then[0]
    if isinstance(store, Atomic) and store.buffer is b:
        return ATOMIC
    if not isinstance(store, Store) or store.buffer is not b:
        return CONDITION
    extents: dict[Var, Extent] = dict(zip(s.vars, s.extents, strict=True))
    indices = [_form(substitute(i, binds)) for i in store.indices]
    if not all(_is_end(substitute(c, binds), indices, b) for c in conditions):
        return CONDITION
    parts: list[Part] = []
    for form, size in zip(indices, b.shape, strict=True):
        own = [v for v in form.terms if isinstance(v, Var) and v in extents]
        if len(own) > 1 or any(form.terms[v] != 1 for v in own):
            return "its indices are no rows of neighbours"
        start = form.plus(Linear(0, {own[0]: 1}), -1) if own else form
        parts.append((summed(start, const(0)), extents.pop(own[0]) if own else 1, size))
    return "an index of the loop is in no dimension" if extents else parts


def _is_end(c: Expr, indices: Sequence[Linear], b: Buffer) -> bool:
    """Whether a condition leaves out nothing but what lies behind the tensor's end."""
    match c:
        case Binary(op="and"):
            return _is_end(c.a, indices, b) and _is_end(c.b, indices, b)
        case Binary(op="<"):
            index, end = _form(c.a), _value(c.b)
            return any(_equal(index, i) and _same(end, n) for i, n in zip(indices, b.shape, strict=True))
        case _:
            return False


def _tiled(launch: Launch, loops: Sequence[For], parts: Sequence[Part]) -> str:
    """Dimension by dimension: all of it at once, or tile number ``v`` of as many as there are blocks or iterations."""
    grid: dict[Var, Extent] = dict(zip(launch.vars, launch.grid, strict=True))
    grid |= {f.var: f.extent for f in loops if f.var is not None}
    for start, extent, size in parts:
        form = _form(start)
        if not form.terms and not form.constant and _same(extent, size):
            continue
        ((var, step),) = form.terms.items() if len(form.terms) == 1 and not form.constant else ((None, 0),)
        if not isinstance(var, Var) or var not in grid:
            return f"a tile that begins at {text(summed(form, const(0)))} has no number"
        count = grid.pop(var)
        if not isinstance(extent, int) or step != extent:
            return f"tiles of {_words(extent)} begin at every {step}"
        if not _reaches(count, step, size):
            return f"{_words(count)} tiles of {extent} need not be {_words(size)} elements"
    left = [v.name for v, n in grid.items() if n != 1]
    return f"blocks that differ in {', '.join(left)} write the same" if left else ""


def _reaches(count: Extent, step: int, size: Extent) -> bool:
    """Whether so many tiles cover the dimension, each some of it. ``count`` may be ``ceildiv(size, step)`` of unknown sizes."""
    if isinstance(count, int) and isinstance(size, int):
        return (count - 1) * step < size <= count * step
    if step == 1:
        return _same(count, size)
    if isinstance(count, int) or isinstance(size, int):
        return False
    return _equal(_form(count), _form(dim(ceildiv(size, step))))


def _value(x: Expr) -> Extent:
    return int(x.value) if isinstance(x, Const) else x


def _same(a: Extent, b: Extent) -> bool:
    return _equal(_form(a), _form(b))


def _equal(a: Linear, b: Linear) -> bool:
    return not a.plus(b, -1).terms and a.constant == b.constant


def _form(x: Extent) -> Linear:
    return Linear(x) if isinstance(x, int) else formed(x, lambda _: Interval())


def _words(x: Extent) -> str:
    return str(x) if isinstance(x, int) else text(x)
