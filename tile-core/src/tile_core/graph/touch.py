"""What a statement reads and writes: takes tile ops and element statements, gives boxes of buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..expr import Buffer, Const, Expr, Var, loads
from ..program import Atomic, For, Parallel, Stmt, Store
from ..program.visit import bodies, defined, expressions, read_regions, written_regions
from .boxes import Box, element_box, region_box


@dataclass(frozen=True, slots=True)
class Touch:
    """One access of ``storage``. Reads of a node come before its writes."""

    storage: Buffer
    box: Box
    write: bool


Loops = dict[Var, "int | Expr | None"]
UNKNOWN = None  # a value that changes within the loop in no known way


def touches(stmts: Sequence[Stmt]) -> tuple[Touch, ...]:
    """Accesses of a tile op, a ``Parallel`` loop or a run of element statements, reads first."""
    reads: list[Touch] = []
    writes: list[Touch] = []
    for s in stmts:
        for t in _of(s, {}, True):
            (writes if t.write else reads).append(t)
    return (*reads, *writes)


def _of(s: Stmt, loops: Loops, always: bool) -> Iterator[Touch]:
    """``always``: every iteration of ``loops`` gets here."""
    for r in read_regions(s):
        yield Touch(r.buffer.storage, region_box(r), False)
    for r in written_regions(s):
        yield Touch(r.buffer.storage, region_box(r), True)
    for x in expressions(s):
        for load in loads(x):
            yield Touch(load.buffer.storage, element_box(load.buffer, load.indices, loops, False), False)
    match s:
        case Store():
            yield Touch(s.buffer.storage, element_box(s.buffer, s.indices, loops, always), True)
        case Atomic():
            box = element_box(s.buffer, s.indices, loops, always)
            if s.op != "store":
                yield Touch(s.buffer.storage, box, False)
            if s.op != "load":
                yield Touch(s.buffer.storage, box, True)
        case _:
            pass
    inner, always = _inside(s, loops, always)
    for body in bodies(s):
        known = dict(inner)
        for step in body:
            yield from _of(step, known, always)
            known.update((v, UNKNOWN) for v in defined(step) if bodies(step) == ())


def _inside(s: Stmt, loops: Loops, always: bool) -> tuple[Loops, bool]:
    """Loop variables inside ``s``, and whether every iteration gets there."""
    match s:
        case Parallel():
            return {**loops, **dict(zip(s.vars, s.extents, strict=True))}, always
        case For() if s.var is not None:
            plain = s.step == 1 and isinstance(s.start, Const) and s.start.value == 0
            return {**loops, s.var: s.extent if plain else UNKNOWN}, False
        case _:
            return loops, False
