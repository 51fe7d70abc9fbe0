"""What must hold of a plan, and whether it does: takes a plan, gives one row for each obligation.

``unknown`` is never ``proved``. What is guarded is checked where it happens, by code or by the launch.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod

from ..expr import Buffer, Space
from ..inference.bulk import BoxCopy
from ..inference.plan import TilePlan
from ..inference.schedule.check import faults
from ..inference.schedule.program import Schedule
from ..layout.layout import Axis, Layout, injective
from ..program import Copy
from .bounds import Status, prove_in_bounds
from .certificates import Certificates
from .outputs import ATOMIC, covered
from .protocols import prove_protocol
from .turns import MOST_SLOTS, proved_turns

PROVED, GUARDED, OPEN, FAILED = "proved", "guarded", "not proved", "failed"


@dataclass(frozen=True, slots=True)
class Row:
    """``what`` has to hold of ``of``; ``detail``: how it was shown, or what is missing. ``ms``: how long that took."""

    what: str
    of: str
    status: str
    detail: str
    ms: float


Answer = tuple[str, str]  # status and detail


def verified(plan: TilePlan, kept: Certificates | None = None) -> list[Row]:
    """All obligations of a plan, in the order of the rooms that made what is asked about.

    ``kept``: where questions to the solver are written.
    """
    out: list[Row] = []
    for what, of, ask in _obligations(plan, kept):
        if kept is not None:
            kept.of = of
        begin = time.perf_counter()
        status, detail = ask()
        out.append(Row(what, of, status, detail, (time.perf_counter() - begin) * 1e3))
    return out


def _obligations(
    plan: TilePlan, kept: Certificates | None
) -> Iterator[tuple[str, str, Callable[[], Answer]]]:
    yield "accesses in bounds", plan.program.name, lambda: _bounds(plan)
    for output in _written(plan):
        yield "written once", output.name, lambda b=output: _output(plan, b, kept)
    for buffer, layout in plan.layouts.items():
        yield "one place for each element", buffer.name, lambda x=layout: _layout(x)
    for name, copy in (*plan.bulk.items(), *plan.leads.items()):
        yield "boxes are the tile", name, lambda n=name, c=copy: _boxes(plan, n, c)
    for name in plan.leads:
        yield "filled ahead, nobody stuck", name, lambda: _turns()
    for name, schedule in plan.schedules.items():
        yield "order kept (graph)", name, lambda s=schedule: _graph(s)
        yield "order kept, nobody stuck", name, lambda s=schedule: _runs(s)
        if kept is not None:
            yield "order kept, nobody stuck (z3)", name, lambda s=schedule: _solver(s, kept)


def _bounds(plan: TilePlan) -> Answer:
    found = Counter(o.status for o in prove_in_bounds(plan.program))
    total, guarded = sum(found.values()), found[Status.GUARD_NEEDED]
    if found[Status.VIOLATED]:
        return FAILED, f"{found[Status.VIOLATED]} of {total} indices leave their buffer"
    told = f"{total - guarded} of {total} indices by intervals"
    return (GUARDED, f"{told}, {guarded} checked where they happen") if guarded else (PROVED, told)


def _written(plan: TilePlan) -> list[Buffer]:
    return list(dict.fromkeys(b for n in plan.graph.nodes for b in n.writes if b.space is Space.GLOBAL))


def _output(plan: TilePlan, b: Buffer, kept: Certificates | None) -> Answer:
    found = covered(plan.program, b, kept)
    if found.missing == ATOMIC:
        return GUARDED, ATOMIC
    return (OPEN, found.missing) if found.missing else (PROVED, found.how)


def _layout(layout: Layout) -> Answer:
    how = f"digits of {'memory' if layout.on(Axis.MEMORY) else 'threads and registers'}"
    if not injective(layout):
        return FAILED, "two elements in one place"
    return PROVED, how + (", an invertible swizzle" if layout.swizzle.bits else "")


def _boxes(plan: TilePlan, name: str, copy: BoxCopy) -> Answer:
    """The bytes that a token expects are those of the tile, and no two boxes meet in it."""
    s = plan.graph.by_name[name].stmt
    assert isinstance(s, Copy)
    shape = s.dst.buffer.static_shape
    if shape is None:
        return OPEN, "the tile has no fixed size"
    wanted = prod(shape) * s.dst.dtype.bits // 8
    size = prod(copy.box)
    places = sorted(p.at for p in copy.pieces)
    if copy.bytes != wanted or places != [n * size for n in range(len(places))]:
        return FAILED, f"{len(places)} boxes of {size} elements, {copy.bytes} bytes, for a tile of {wanted}"
    guarded = f", {len(copy.conditions)} conditions asked at the launch" if copy.conditions else ""
    return (GUARDED if copy.conditions else PROVED), f"{len(places)} boxes, {copy.bytes} bytes{guarded}"


def _turns() -> Answer:
    """A tile filled once for each tile of the grid, with as many slots as lowering may give it."""
    proofs = [proved_turns(slots) for slots in range(1, MOST_SLOTS + 1)]
    if any(p.found for p in proofs):
        return FAILED, "a tile is filled before it was read, or nobody goes on"
    pairs = sum(p.pairs for p in proofs)
    return PROVED, f"{pairs} pairs of events, for any number of turns, 1 to {MOST_SLOTS} slots"


def _graph(schedule: Schedule) -> Answer:
    found = faults(schedule)
    return (FAILED, "; ".join(found)) if found else (PROVED, f"{len(schedule.deps)} dependences by distances")


def _runs(schedule: Schedule) -> Answer:
    proof = prove_protocol(schedule)
    if proof.found:
        return FAILED, "; ".join(map(str, proof.found))
    return (
        PROVED,
        f"{proof.pairs} pairs of events, in runs of 1 to {proof.longest} iterations as in all others",
    )


def _solver(schedule: Schedule, kept: Certificates) -> Answer:
    from .schedules import prove_schedule

    proof = prove_schedule(schedule, kept=kept)
    if proof.failures:
        return FAILED, "; ".join(proof.failures)
    return PROVED, f"{proof.cases} cases, for any number of iterations"
