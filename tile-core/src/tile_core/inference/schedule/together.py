"""Releases told together: what hands tiles back to a copy engine costs a fence, which several tiles of an iteration can share."""

from __future__ import annotations

from dataclasses import replace

from .model import SIGNAL, WORK
from .patience import keeps
from .program import Schedule, Step
from .slots import sized


def together(schedule: Schedule) -> Schedule:
    """The schedule with tokens of tiles that threads read told by the last reader of the iteration, where that is early enough.

    Only by readers of one kernel step's iteration: then the wait for a copy never waits for what comes behind it.
    """
    moved: dict[str, str] = {}
    for steps in schedule.streams.values():
        for stage in {s.stage for s in steps}:
            readers = [s for s in steps if s.stage == stage and _releases(schedule, s)]
            for s in readers[:-1]:
                later = [x.op for x in readers[readers.index(s) + 1 :] if _early_enough(schedule, s.op, x.op)]
                moved |= {s.op: later[-1]} if later else {}
    tokens = {
        name: replace(t, producers=tuple(dict.fromkeys(moved.get(u, u) for u in t.producers)))
        for name, t in schedule.tokens.items()
    }
    return sized(_heard_once(replace(schedule, tokens=tokens))) if moved else schedule


def _heard_once(schedule: Schedule) -> Schedule:
    """Of tokens that the same ops tell and that ops of one stream wait for in one iteration, the first waiter's is enough."""
    first: set[tuple[tuple[str, ...], str, int, int]] = set()
    unheard: set[str] = set()
    for stream, steps in schedule.streams.items():
        for s, w in ((step, w) for step in steps for w in step.waits):
            token = schedule.tokens[w.token]
            if token.kind != SIGNAL or len(list(schedule.waits_for(w.token))) > 1:
                continue
            heard = token.producers, stream, s.stage, w.distance
            unheard |= {w.token} if heard in first else set()
            first.add(heard)
    streams = {
        name: tuple(replace(s, waits=tuple(w for w in s.waits if w.token not in unheard)) for s in steps)
        for name, steps in schedule.streams.items()
    }
    tokens = {n: t for n, t in schedule.tokens.items() if n not in unheard}
    return replace(schedule, streams=streams, tokens=tokens)


def _releases(schedule: Schedule, step: Step) -> bool:
    """Whether a step is one of threads that only tells others what they may write."""
    op = schedule.ops[step.op]
    if op.asynchronous or op.kind != WORK:
        return False
    heard = [
        schedule.ops[v]
        for t in schedule.tokens.values()
        if t.kind == SIGNAL and t.producers == (op.name,)
        for v, _ in schedule.waits_for(t.name)
    ]
    told = any(op.name in t.producers for t in schedule.tokens.values())
    return told and bool(heard) and all(v.asynchronous and v.stream != op.stream for v in heard)


def _early_enough(schedule: Schedule, op: str, later: str) -> bool:
    waiting = [d for d in schedule.deps if d.u == op and schedule.ops[d.v].stream != schedule.ops[op].stream]
    moved = [replace(d, u=later) for d in waiting]
    return all(d.kind == "WAR" and keeps(schedule.body, d, schedule.depth, schedule.times) for d in moved)
