"""The best times, where a solver finds better ones than the search: from a body and its times to shorter ones, and a proved bound.

Deterministic: z3's resources are counted, never time, and intervals are asked for in a fixed order. An ``unknown`` proves nothing,
and leaves what was found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations

from .answers import Answers, Optimum, asked
from .asking import apart
from .attempt import Tables, settled
from .check import faults
from .compact import compacted
from .model import RELAY, Body, Dep, Op, fits
from .modulo import polished
from .patience import keeps
from .program import Schedule
from .timing import Timing, overlap
from .undisturbed import disturbed

RLIMIT = 30_000_000  # z3's resources for one interval
UNKNOWN = "unknown"
PATIENCE = 3  # intervals that may remain unknown before the solver is asked no more


def best(
    fast: Schedule,
    body: Body,
    deps: Sequence[Dep],
    times: Timing,
    made: Callable[[Timing], Schedule],
    finish: Callable[[Schedule], Schedule],
) -> Schedule:
    """The schedule of the solver's times if it passes its check and is shorter than ``fast``, which is made from ``times``.

    ``made`` makes schedules from times, not checked yet; ``finish`` gives one that is. Answers are kept on disk.
    """
    if times.interval <= times.bound:
        return replace(fast, lower=times.bound)
    answers, key = Answers.here(), asked(body, deps, times, RLIMIT)
    found = answers.get(key)
    if found is None:
        found = apart(body, deps, times, RLIMIT)
        if found is None:
            return replace(fast, lower=times.bound)
        answers.put(key, found)
    if found.times is not None and possible(body, deps, found.times):
        solved = made(found.times)
        if solved.interval < fast.interval and not faults(solved):
            return replace(finish(solved), solved=True, lower=found.lower)
    return replace(fast, lower=found.lower)


def possible(body: Body, deps: Sequence[Dep], times: Timing) -> bool:
    """Whether times keep all dependences, do one thing at a time on each unit and stream, and have room for their rings.

    Relays take no time that counts: the search moves others over them, too.
    """
    apart = not any(_together(u, v, times) for u, v in combinations(body.ops, 2))
    return apart and fits(body, times.depth) and all(keeps(body, d, times.depth, times) for d in deps)


def _together(u: Op, v: Op, times: Timing) -> bool:
    """Whether two ops are on one unit or stream at the same time."""
    start, issue, interval = times.start, times.issue, times.interval
    unit = u.unit and u.unit == v.unit
    stream = u.stream == v.stream and RELAY not in (u.kind, v.kind)
    return bool(unit and overlap(start[u.name], u.busy, start[v.name], v.busy, interval)) or (
        stream and overlap(issue[u.name], u.hold, issue[v.name], v.hold, interval)
    )


def optimum(body: Body, deps: Sequence[Dep], times: Timing, rlimit: int = RLIMIT) -> Optimum:
    """The shortest times between the proved bound of ``times`` and their interval, by halves.

    ``deps`` have those of the relays. What the solver finds is finished as what the search finds is, and counts as it is then.
    """
    from .solver import Question  # loads z3, which takes a tenth of a second

    lower, shortest, verdicts = times.bound, times, list[tuple[int, str]]()
    low, high, allowed = lower, times.interval, disturbed(body, deps, times)
    while low < high and sum(v == UNKNOWN for _, v in verdicts) < PATIENCE:
        interval = (low + high) // 2
        found = Question(body, deps, interval, times, allowed).answer(rlimit)
        verdicts.append((interval, found.verdict))
        if found.times is None:
            low = interval + 1  # an order that has an interval has every longer one too
            lower = low if found.verdict == "unsat" else lower
            continue
        tables = Tables(body, deps, found.times.depth)
        close = settled(tables, compacted(tables.links, found.times, lower) or found.times)
        high = min(interval, close.interval)
        shortest = min(shortest, polished(tables, close, times.bound), key=lambda t: t.interval)
    better = replace(shortest, bound=times.bound) if shortest.interval < times.interval else None
    return Optimum(better, lower, tuple(verdicts))
