"""The graph check: whether a schedule keeps every dependence and cannot get stuck, for any number of iterations.

It looks at the program as emitted: every dependence is covered by a chain of no larger distance, no cycle has distance 0 or
less, and no token laps.
"""

from __future__ import annotations

from ...errors import InternalError
from .model import SIGNAL
from .program import Schedule
from .slots import enough, order_of


def faults(schedule: Schedule) -> list[str]:
    """What is wrong, one sentence each; empty if the schedule is safe and live."""
    order = order_of(schedule)
    found = [
        f"{d} at distance {d.at(schedule.depth)} is not kept"
        for d in schedule.deps
        if order.way(d, schedule.depth) is None
    ]
    order = order_of(schedule, mates=True) if schedule.uneven else order
    if order.dead_cycle():
        found.append("some op waits for itself")
    found += [
        f"token {t.name} needs more than {t.slots} slots"
        for t in schedule.tokens.values()
        if t.kind == SIGNAL and not enough(schedule, order, t)
    ]
    return found


def checked(schedule: Schedule) -> Schedule:
    """The schedule itself.

    Raises:
        InternalError: it is not safe, or not live.
    """
    if found := faults(schedule):
        raise InternalError(f"schedule of {schedule.body.name}: " + "; ".join(found))
    return schedule
