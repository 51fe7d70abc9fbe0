"""Who tells what: the end of an engine's work is one event of a group, what its threads did is not."""

from __future__ import annotations

from dataclasses import replace

from .model import MEET, RELAY, Dep, done
from .order import Order
from .program import Schedule, Token


def told(schedule: Schedule) -> Schedule:
    """The schedule with tokens that one warp of a group tells for all, wherever that is enough."""
    relays = {done(o.name) for o in schedule.body.ops if schedule.body.together(o.name)} & schedule.ops.keys()
    alone = {n for n, t in schedule.tokens.items() if relays & {*t.producers}}
    alone -= crowds(schedule) if alone else frozenset()
    tokens = {n: replace(t, once=n in alone) for n, t in schedule.tokens.items()}
    return replace(schedule, tokens=tokens) if alone else schedule


def crowds(schedule: Schedule) -> frozenset[str]:
    """Tokens told when an engine's work has ended by which others also learn what the threads did before that.

    One thread that saw the end knows it for its whole group, but not whether the group's other warps have got as far: those
    may still be reading what stands in front of the wait in the program.
    """
    order = Order(schedule.body, schedule.places)
    for step in schedule.steps():
        for wait in step.waits:
            order.add(step.op, wait, schedule.tokens[wait.token])
    own = [d for d in schedule.deps if not schedule.ops[d.u].asynchronous and schedule.ops[d.u].kind != RELAY]
    used = {
        wait.token
        for d in own
        for _, wait in order.way(d, schedule.depth) or ()
        if not _met(schedule, d, schedule.tokens[wait.token])
    }
    ends = {o.name for o in schedule.body.ops if o.kind == RELAY}
    return frozenset(name for name in used if ends & {*schedule.tokens[name].producers})


def _met(schedule: Schedule, d: Dep, token: Token) -> bool:
    """Whether all warps have met between what they wrote for products of their stream, and the ends that a token tells of.

    What products read is shown to engines at once by who wrote it (``RoleLoop.shown_by``); reads are not.
    """
    stream = schedule.ops[d.u].stream
    shown = any(
        x.u == d.u and x.kind == "RAW" and x.storage == d.storage and _own_product(schedule, x.v, stream)
        for x in schedule.deps
    )
    if d.kind != "WAW" or not shown:
        return False
    place = {s.op: n for n, s in enumerate(schedule.streams[stream])}
    meetings = [n for op, n in place.items() if schedule.ops[op].kind == MEET and n > place[d.u]]
    return all(u in place and any(n < place[u] for n in meetings) for u in token.producers)


def _own_product(schedule: Schedule, op: str, stream: str) -> bool:
    return schedule.ops[op].asynchronous and schedule.ops[op].stream == stream
