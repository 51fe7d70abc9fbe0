"""A proof that a schedule is safe and live for any number of iterations: takes a schedule, gives counterexamples if there are any.

What must come before what concerns two events some iterations apart. Any such pair of a long run lies in a part of it that is a
short run itself: its events are those of the short one, a few iterations on, and what comes before what in the short one does
so in the long one, too. So the run in which both just exist decides, and it is also the first in which the pair could be
broken. Independent of the graph check, which looks for chains of distances.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from ..inference.schedule.model import SIGNAL, Dep
from ..inference.schedule.program import Schedule, Token
from .unfolded import BEGIN, END, Event, Unfolded, tellers, warps

End = tuple[str, int, int]  # op, warp, begin or end
ENOUGH = 4  # counterexamples
KEPT = 256  # proofs


@dataclass(frozen=True, slots=True)
class Demand:
    """``first`` comes before ``then``. ``reason``: the dependence or the token that demands it.

    Of all pairs that are as far apart these are the first ones of a run.
    """

    first: Event
    then: Event
    reason: Dep | Token

    @property
    def trips(self) -> int:
        """The fewest iterations in which both exist."""
        return max(self.first[1], self.then[1]) + 1

    @property
    def mates(self) -> bool:
        """Whether it is about where warps have come, not about what they read and wrote."""
        return isinstance(self.reason, Token)


@dataclass(frozen=True, slots=True)
class Counterexample:
    """In a run of ``trips`` iterations ``then`` may come although ``first`` has not. ``reason``: who demands that it has; None if
    both wait for each other, and "" if ``first`` never comes.
    """

    trips: int
    first: Event
    then: Event
    reason: Dep | Token | str | None


@dataclass(frozen=True)
class Protocol:
    """What was shown: ``pairs`` of events in runs of up to ``longest`` iterations, or what contradicts it."""

    found: tuple[Counterexample, ...]
    pairs: int
    longest: int


def prove_protocol(schedule: Schedule, most: int = ENOUGH) -> Protocol:
    """Prove a schedule, or give up to ``most`` counterexamples, those of the shortest runs first.

    Schedules of equal structure are proved once, whatever the kernels that they are of.
    """
    return _proved(_Structure(_structure(schedule), schedule), most)


@dataclass(frozen=True)
class _Structure:
    """A schedule that is equal to others of the same structure."""

    key: tuple[object, ...]
    schedule: Schedule = field(compare=False)


def _structure(s: Schedule) -> tuple[object, ...]:
    """All that a proof looks at."""
    ops = tuple((o.name, o.stream, o.unit, o.asynchronous, o.kind) for o in s.body.ops)
    tiles = tuple((t.name, t.space) for t in s.body.storage)
    depth = tuple(sorted(s.depth.items()))
    streams = tuple(s.streams.items()), s.body.streams, s.body.units
    return ops, tiles, depth, streams, tuple(s.tokens.items()), s.deps


@lru_cache(maxsize=KEPT)
def _proved(of: _Structure, most: int) -> Protocol:
    schedule = of.schedule
    wanted = [*dict.fromkeys((*_dependences(schedule), *_slots(schedule)))]
    found: list[Counterexample] = [*_for_ever(schedule)][:most]
    longest = max((d.trips for d in wanted), default=1)
    for trips, mates in sorted({(d.trips, d.mates) for d in wanted}) if not found else ():
        run = Unfolded(schedule, trips, mates)
        for d in wanted:
            here = (d.trips, d.mates) == (trips, mates) and len(found) < most
            if here and not run.comes_before(d.first, d.then):
                found.append(Counterexample(trips, d.first, d.then, d.reason))
    return Protocol(tuple(found), len(wanted), longest)


def _dependences(schedule: Schedule) -> Iterator[Demand]:
    """What memory demands, between any two warps that it is shared by."""
    for d in schedule.deps:
        distance = d.at(schedule.depth)
        for x, y in schedule.body.pairs(d, schedule.uneven):
            # a queue keeps what is begun in order, and what it has done of one warp's ops
            begun = x == y and d.queued and schedule.gap(d.u, d.v) <= distance
            first = d.u, max(0, -distance), x, BEGIN if begun else END
            yield Demand(first, (d.v, max(0, distance), y, BEGIN), d)


def _slots(schedule: Schedule) -> Iterator[Demand]:
    """No arrival comes in a slot before the waits for the last instance in it are over, nor before all of its arrivals."""
    for t in schedule.tokens.values():
        arrivals = [(u, x) for u in t.producers for x in tellers(schedule, t, u)]
        for u, x in arrivals if t.kind == SIGNAL else ():
            then = u, t.slots, x, END
            for op, wait in schedule.waits_for(t.name):
                for w in warps(schedule, op):
                    yield Demand((op, wait.distance, w, BEGIN), then, t)
            yield from (Demand((v, 0, y, END), then, t) for v, y in arrivals if (v, y) != (u, x))


def _for_ever(schedule: Schedule) -> Iterator[Counterexample]:
    """Who waits for what never comes, or for itself, in a run of any number of iterations.

    A long run repeats itself: it has a circle just if one can be put together from the steps of a run that is long enough to
    have each of them, in which as many iterations are gone back as forth, or more.
    """
    far = [w.distance for s in schedule.steps() for w in s.waits]
    run = Unfolded(schedule, max((1, *far)) + max(schedule.stages(s) for s in schedule.streams) + 1, True)
    yield from (Counterexample(run.trips, never, waiting, "") for waiting, never in run.missing)
    steps: dict[tuple[End, End], int] = {}
    for then, into in run.into.items():
        for first in into:
            key = (first[0], *first[2:]), (then[0], *then[2:])
            steps[key] = min(steps.get(key, run.trips), then[1] - first[1])
    circle = _circle(steps)
    if circle:
        a, b = circle
        first = max(0, -steps[circle])
        yield Counterexample(run.trips, (a[0], first, *a[1:]), (b[0], first + steps[circle], *b[1:]), None)


def _circle(steps: dict[tuple[End, End], int]) -> tuple[End, End] | None:
    """A step of a circle whose distances add up to zero or less; None: each end can be given a clock that agrees with all."""
    ends = dict.fromkeys(e for step in steps for e in step)
    clock, scale = dict.fromkeys(ends, 0), len(ends) + 1
    late: tuple[End, End] | None = None
    for _ in range(len(ends) + 1):
        late = None
        for (a, b), distance in steps.items():
            # behind a by one, where an iteration lasts longer than any way without a circle
            if clock[b] < (new := clock[a] + 1 - distance * scale):
                clock[b], late = new, (a, b)
        if late is None:
            return None
    return late
