"""The fewest barriers for a stream whose warps share memory: from its steps and dependences to gaps between the steps.

Warps drift apart. A dependence through memory between any two of them needs a barrier somewhere after its source and before
its target, which is a set of gaps of the cyclic program; the fewest barriers are a minimum hitting set of these. Bodies are
small, so sets are tried by size; among equally small ones the least stall wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

from .model import SIGNAL, Body, Dep
from .program import Places, Step
from .timing import Timing

TRIES = 20_000  # sets that are tried before gaps are picked greedily


@dataclass(frozen=True)
class Meetings:
    """Barriers of one stream before steps ``gaps``, at every kernel step. ``crossing``: the dependences that need them."""

    stream: str
    steps: tuple[Step, ...]
    places: Places
    depth: Mapping[str, int]
    crossing: tuple[Dep, ...]
    gaps: tuple[int, ...] = ()

    def step_of(self, d: Dep, gap: int) -> int:
        """The kernel step of the last barrier at ``gap`` before v of iteration 0."""
        stage, place = self.places.at[d.v]
        return stage if gap <= place else stage - 1

    def serves(self, d: Dep, gap: int) -> bool:
        """Whether a barrier at ``gap`` stands between the two ends of the dependence."""
        stage, place = self.places.at[d.u]
        step, source = self.step_of(d, gap), stage - d.at(self.depth)
        return step > source or (step == source and gap > place)

    def last(self, d: Dep, gaps: Sequence[int]) -> int:
        """The last of ``gaps`` that serves the dependence."""
        return max((g for g in gaps if self.serves(d, g)), key=lambda g: (self.step_of(d, g), g))

    def slack(self, d: Dep, gap: int) -> int:
        """Iterations of u that the barrier may leave unfinished: only i - distance is needed."""
        stage, place = self.places.at[d.u]
        newest = self.step_of(d, gap) - stage - (0 if place < gap else 1)
        return max(0, newest + d.at(self.depth))

    def stall(self, gaps: Sequence[int], body: Body, times: Timing) -> tuple[int, int]:
        """Clocks that sources end after the barriers that wait for them; and before, less than 0: the more, the surer."""
        return _stall([self.late(d, self.last(d, gaps), body, times) for d in self.crossing])

    def late(self, d: Dep, gap: int, body: Body, times: Timing) -> int:
        """Clocks that the source of a dependence ends after a barrier at ``gap``."""
        step = self.steps[gap]
        at = times.issue[step.op] + times.interval * (self.step_of(d, gap) - step.stage)
        end = times.start[d.u] + body.op[d.u].span - times.interval * d.at(self.depth)
        return end - at


def _stall(late: Sequence[int]) -> tuple[int, int]:
    return sum(max(0, n) for n in late), sum(min(0, n) for n in late)


def crossing(body: Body, deps: Sequence[Dep], stream: str) -> tuple[Dep, ...]:
    """Dependences between different warps of ``stream`` that only a barrier can keep.

    An op that writes the same elements with the same threads in each iteration has none with itself; what the hardware
    signals to everybody needs none either.
    """
    return tuple(
        d
        for d in deps
        if body.op[d.u].stream == stream == body.op[d.v].stream
        and body.shared(d.storage)
        and not (d.u == d.v and d.kind == "WAW")
        and not (body.op[d.u].asynchronous and body.observed(d.u) == SIGNAL)
    )


def meetings(
    body: Body,
    deps: Sequence[Dep],
    stream: str,
    steps: tuple[Step, ...],
    depth: Mapping[str, int],
    times: Timing,
) -> Meetings:
    """The barriers of a cooperative stream: fewest, then least stall."""
    found = Meetings(stream, steps, Places.of({stream: steps}), depth, crossing(body, deps, stream))
    wanted = {
        sum(1 << g for g in range(len(steps)) if found.serves(d, g)): d for d in reversed(found.crossing)
    }
    return replace(found, gaps=_hitting(found, tuple(wanted), len(steps), body, times))


def _hitting(
    found: Meetings, wanted: tuple[int, ...], count: int, body: Body, times: Timing
) -> tuple[int, ...]:
    places: Sequence[int] = range(count)
    for size in range(count + 1):
        if comb(len(places), size) > TRIES:
            places = _best_of_equals(found, count, body, times)
        if comb(len(places), size) > TRIES:
            break
        good = [c for c in combinations(places, size) if _hits(c, wanted)]
        if good:
            return min(good, key=lambda c: found.stall(c, body, times))
    return _greedy(wanted, count)


def _best_of_equals(found: Meetings, count: int, body: Body, times: Timing) -> list[int]:
    """Of gaps that serve the same dependences the one with the least stall."""
    equals: dict[tuple[Dep, ...], list[int]] = {}
    for g in range(count):
        served = tuple(d for d in found.crossing if found.serves(d, g))
        if served:
            equals.setdefault(served, []).append(g)
    return sorted(
        min(gaps, key=lambda g: _stall([found.late(d, g, body, times) for d in served]))
        for served, gaps in equals.items()
    )


def _hits(gaps: Sequence[int], wanted: tuple[int, ...]) -> bool:
    mask = sum(1 << g for g in gaps)
    return all(mask & w for w in wanted)


def _greedy(wanted: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Gaps that serve the most dependences first."""
    chosen: list[int] = []
    left = wanted
    while left:
        best = max(range(count), key=lambda g: sum(1 for w in left if w >> g & 1))
        chosen.append(best)
        left = tuple(w for w in left if not w >> best & 1)
    return tuple(sorted(chosen))
