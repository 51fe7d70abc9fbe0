"""Tokens that must be told by every warp: the end of an engine's work is one event of a group, what its threads did is not."""

from __future__ import annotations

from .model import RELAY
from .order import Order
from .program import Schedule


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
    used = {wait.token for d in own for _, wait in order.way(d, schedule.depth) or ()}
    ends = {o.name for o in schedule.body.ops if o.kind == RELAY}
    return frozenset(name for name in used if ends & {*schedule.tokens[name].producers})
