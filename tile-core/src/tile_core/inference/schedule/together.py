"""Releases told together: what hands tiles back to a copy engine costs a fence, which several tiles of an iteration can share.

Products cost none, but a word fewer for tiles with one slot, which are filled together anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .model import RELAY, SIGNAL, WORK, Dep, done
from .patience import keeps
from .program import Schedule, Step
from .relays import summed
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
    """Whether a step only tells others what they may write: one of threads, or the end of products on tiles with one slot."""
    op = schedule.ops[step.op]
    if op.asynchronous or op.kind not in (WORK, RELAY):
        return False
    heard = [
        schedule.ops[v]
        for t in schedule.tokens.values()
        if t.kind == SIGNAL and t.producers == (op.name,)
        for v, _ in schedule.waits_for(t.name)
    ]
    told = any(op.name in t.producers for t in schedule.tokens.values())
    others = told and bool(heard) and all(v.asynchronous and v.stream != op.stream for v in heard)
    return others and (
        op.kind == WORK or all(schedule.depth.get(d.storage) == 1 for d in _waiting(schedule, op.name))
    )


def _waiting(schedule: Schedule, op: str) -> Iterator[Dep]:
    """What other streams wait for when a step of threads has been done, or the end that it sees has come."""
    ends = schedule.ops[op].kind == RELAY
    for d in summed(schedule.body, schedule.deps) if ends else schedule.deps:
        if (done(d.u) if ends else d.u) == op and schedule.ops[d.v].stream != schedule.ops[op].stream:
            yield d


def _early_enough(schedule: Schedule, op: str, later: str) -> bool:
    moved = [replace(d, u=later) for d in _waiting(schedule, op)]
    return all(d.kind == "WAR" and keeps(schedule.body, d, schedule.depth, schedule.times) for d in moved)
