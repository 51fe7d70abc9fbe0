"""What must hold of a plan, and whether it does: takes a plan, gives one row for each obligation.

``unknown`` is never ``proved``. What is guarded is checked where it happens, by code or by the launch.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from math import prod

from ..errors import TileError
from ..expr import Buffer, Space
from ..inference.bulk import BoxCopy
from ..inference.plan import TilePlan
from ..inference.schedule.check import faults
from ..inference.schedule.program import Schedule
from ..layout.layout import Axis, Layout, injective
from ..program import Copy
from ..program.visit import statements
from . import counterexamples
from .arrivals import Fault, miscounted, unfenced
from .bounds import Status, left, prove_in_bounds
from .certificates import Certificates
from .heard import Emitted
from .outputs import ATOMIC, covered
from .protocols import prove_protocol
from .sites import Sites
from .solver import usable
from .turns import MOST_SLOTS, proved_turns

PROVED, GUARDED, OPEN, FAILED = "proved", "guarded", "not proved", "failed"
LARGEST = 1 << 16  # elements of a tile of which two in one place are looked for


@dataclass(frozen=True, slots=True)
class Row:
    """``what`` has to hold of ``of``; ``detail``: how it was shown, or what is missing. ``ms``: how long that took.

    ``example``: what contradicts it, with the lines of the user's program; "" if nothing was found.
    """

    what: str
    of: str
    status: str
    detail: str
    ms: float
    example: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """As in ``Row``; ``against`` is the counterexample as an error."""

    status: str
    detail: str
    against: TileError | None = None


@dataclass(frozen=True, slots=True)
class Obligation:
    """``ask`` says whether ``what`` holds of ``of``. ``deep``: it may ask z3, or was asked before by who made what it is about.

    ``size``: statements or ops that it looks at; the time that it takes grows with that.
    """

    what: str
    of: str
    ask: Callable[[], Answer]
    deep: bool = False
    size: int = 1


def verified(plan: TilePlan, kept: Certificates | None = None, emitted: Sequence[Emitted] = ()) -> list[Row]:
    """All obligations of a plan, in the order of the rooms that made what is asked about.

    ``kept``: where questions to the solver are written. ``emitted``: what was lowered from the plan, where threads work beside
    engines.
    """
    out: list[Row] = []
    for o in (*of_plan(plan, kept), *of_code(emitted)):
        if kept is not None:
            kept.of = o.of
        begin = time.perf_counter()
        a = o.ask()
        ms = (time.perf_counter() - begin) * 1e3
        out.append(Row(o.what, o.of, a.status, a.detail, ms, str(a.against or "")))
    return out


def of_plan(plan: TilePlan, kept: Certificates | None = None) -> Iterator[Obligation]:
    """What has to hold of the plan itself."""
    size = sum(1 for _ in statements(plan.program.body))
    yield Obligation("accesses in bounds", plan.program.name, partial(_bounds, plan), size=size)
    for output in _written(plan):
        yield Obligation("written once", output.name, partial(_output, plan, output, kept), deep=True)
    for buffer, layout in plan.layouts.items():
        yield Obligation("one place for each element", buffer.name, partial(_layout, buffer, layout))
    for name, copy in (*plan.bulk.items(), *plan.leads.items()):
        yield Obligation("boxes are the tile", name, partial(_boxes, plan, name, copy))
    for name in plan.leads:
        yield Obligation("filled ahead, nobody stuck", name, _turns)
    for name, schedule in plan.schedules.items():
        yield Obligation("order kept (graph)", name, partial(_graph, schedule), deep=True)
        size = len(schedule.ops) * max(1, *schedule.depth.values())
        yield Obligation("order kept, nobody stuck", name, partial(_runs, plan, schedule), size=size)
        if kept is not None:
            asked = partial(_solver, schedule, kept)
            yield Obligation("order kept, nobody stuck (z3)", name, asked, deep=True)


def of_code(emitted: Sequence[Emitted]) -> Iterator[Obligation]:
    """What has to hold of launches whose threads work beside engines."""
    for n, e in enumerate(emitted):
        walked, of = cache(partial(Sites.of, e)), f"launch {n}"
        size = sum(1 for _ in statements(e.body))
        yield Obligation("arrivals = participants", of, partial(_arrivals, e, walked), size=size)
        yield Obligation("fences between threads and engines", of, partial(_fences, e, walked), size=size)


def _arrivals(e: Emitted, walked: Callable[[], Sites]) -> Answer:
    places = sum(len(x.arrivals) for x in walked().arrivals)
    return _faults(miscounted(e, walked()), f"{len(e.tokens)} tokens, told in {places} places")


def _fences(e: Emitted, walked: Callable[[], Sites]) -> Answer:
    return _faults(unfenced(e, walked()), "on each way from threads to engines")


def _faults(faults: Iterator[Fault], how: str) -> Answer:
    found = list(faults)
    if not found:
        return Answer(PROVED, how)
    return Answer(FAILED, "; ".join(f.text for f in found), counterexamples.at_sites(found[0]))


def _bounds(plan: TilePlan) -> Answer:
    made = prove_in_bounds(plan.program)
    found = Counter(o.status for o in made)
    total, guarded = sum(found.values()), found[Status.GUARD_NEEDED]
    if found[Status.VIOLATED]:
        first = next(o for o in made if o.status is Status.VIOLATED)
        return Answer(FAILED, f"{found[Status.VIOLATED]} of {total} indices leave their buffer", left(first))
    told = f"{total - guarded} of {total} indices by intervals"
    if guarded:
        return Answer(GUARDED, f"{told}, {guarded} checked where they happen")
    return Answer(PROVED, told)


def _written(plan: TilePlan) -> list[Buffer]:
    return list(dict.fromkeys(b for n in plan.graph.nodes for b in n.writes if b.space is Space.GLOBAL))


def _output(plan: TilePlan, b: Buffer, kept: Certificates | None) -> Answer:
    found = covered(plan.program, b, kept)
    if found.missing == ATOMIC:
        return Answer(GUARDED, ATOMIC)
    if not found.missing:
        return Answer(PROVED, found.how)
    if found.clash is None:
        return Answer(OPEN, found.missing)
    against = counterexamples.twice(b, found.clash, found.span)
    return Answer(FAILED if found.clash.sure else OPEN, found.missing, against)


def _layout(buffer: Buffer, layout: Layout) -> Answer:
    how = f"digits of {'memory' if layout.on(Axis.MEMORY) else 'threads and registers'}"
    if not injective(layout):
        pair = _in_one_place(layout)
        against = counterexamples.shared_place(buffer.name, *pair, buffer.span) if pair else None
        return Answer(FAILED, "two elements in one place", against)
    return Answer(PROVED, how + (", an invertible swizzle" if layout.swizzle.bits else ""))


def _in_one_place(layout: Layout) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    seen: dict[tuple[tuple[Axis, int], ...], tuple[int, ...]] = {}
    for at in product(*map(range, layout.shape)) if prod(layout.shape) <= LARGEST else ():
        place = tuple(sorted(layout.place(at).items()))
        if place in seen:
            return seen[place], at
        seen[place] = at
    return None


def _boxes(plan: TilePlan, name: str, copy: BoxCopy) -> Answer:
    """The bytes that a token expects are those of the tile, and no two boxes meet in it."""
    s = plan.graph.by_name[name].stmt
    assert isinstance(s, Copy)
    shape = s.dst.buffer.static_shape
    if shape is None:
        return Answer(OPEN, "the tile has no fixed size")
    wanted = prod(shape) * s.dst.dtype.bits // 8
    size = prod(copy.box)
    places = sorted(p.at for p in copy.pieces)
    if copy.bytes != wanted or places != [n * size for n in range(len(places))]:
        text = f"{len(places)} boxes of {size} elements, {copy.bytes} bytes, for a tile of {wanted}"
        return Answer(FAILED, text, counterexamples.at_sites(Fault(f"{name} copies {text}", s.span)))
    guarded = f", {len(copy.conditions)} conditions asked at the launch" if copy.conditions else ""
    return Answer(GUARDED if copy.conditions else PROVED, f"{len(places)} boxes, {copy.bytes} bytes{guarded}")


def _turns() -> Answer:
    """A tile filled once for each tile of the grid, with as many slots as lowering may give it."""
    proofs = [proved_turns(slots) for slots in range(1, MOST_SLOTS + 1)]
    if any(p.found for p in proofs):
        return Answer(FAILED, "a tile is filled before it was read, or nobody goes on")
    pairs = sum(p.pairs for p in proofs)
    return Answer(PROVED, f"{pairs} pairs of events, for any number of turns, 1 to {MOST_SLOTS} slots")


def _graph(schedule: Schedule) -> Answer:
    found = faults(schedule)
    return (
        Answer(FAILED, "; ".join(found))
        if found
        else Answer(PROVED, f"{len(schedule.deps)} dependences by distances")
    )


def _runs(plan: TilePlan, schedule: Schedule) -> Answer:
    proof = prove_protocol(schedule)
    if not proof.found:
        how = f"{proof.pairs} pairs of events, in runs of 1 to {proof.longest} iterations as in all others"
        return Answer(PROVED, how)
    errors = [counterexamples.overtaking(plan.graph, schedule, c) for c in proof.found]
    return Answer(FAILED, "; ".join(e.message for e in errors), errors[0])


def _solver(schedule: Schedule, kept: Certificates) -> Answer:
    if not usable():
        return Answer(OPEN, "another version of the solver's library is loaded in this process")
    from .schedules import prove_schedule

    proof = prove_schedule(schedule, kept=kept)
    if proof.failures:
        return Answer(FAILED, "; ".join(proof.failures))
    return Answer(PROVED, f"{proof.cases} cases, for any number of iterations")
