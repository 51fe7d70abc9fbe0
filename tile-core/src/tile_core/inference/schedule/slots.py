"""How many instances of each token must be told apart: takes a schedule, gives one whose tokens have enough slots."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .model import SIGNAL
from .order import Event, Order
from .program import Schedule, Token

FAR = 16  # a token that needs more slots than this is a fault of the schedule
UNBOUNDED = 1 << 20


def order_of(schedule: Schedule, mates: bool = False) -> Order:
    """What happens before what in a schedule. ``mates`` as for ``Order``."""
    order = Order(schedule.body, schedule.places, schedule.uneven, mates)
    for s in schedule.steps():
        for w in s.waits:
            order.add(s.op, w, schedule.tokens[w.token])
    return order


def sized(schedule: Schedule) -> Schedule:
    """The schedule with the fewest slots such that no arrival comes before the waits for the last one in its slot are over."""
    order = order_of(schedule)
    tokens = {
        name: replace(t, slots=needed(schedule, order, t)) if t.kind == SIGNAL else t
        for name, t in schedule.tokens.items()
    }
    return replace(schedule, tokens=tokens)


def needed(schedule: Schedule, order: Order, token: Token) -> int:
    """The fewest slots of a token."""
    most = 1
    for first, then, offset in laps(schedule, order, token):
        counts = range(max(1, offset, most), max(1, offset) + FAR)
        most = max(most, next((n for n in counts if order.before(first, then, n - offset)), UNBOUNDED))
    return most


def enough(schedule: Schedule, order: Order, token: Token) -> bool:
    """Whether the slots that a token has are enough."""
    return all(
        token.slots >= offset and order.before(first, then, token.slots - offset)
        for first, then, offset in laps(schedule, order, token)
    )


def laps(schedule: Schedule, order: Order, token: Token) -> Iterator[tuple[Event, Event, int]]:
    """(first, then, offset): with n slots, ``first`` of i - (n - offset) must come before ``then`` of i.

    The wait for an instance comes before the next arrival in its slot, and no producer laps another one.
    """
    arrivals = [(u, w, "c") for u in token.producers for w in order.tellers(token, u)]
    for op, wait in schedule.waits_for(token.name):
        for w in order.warps(op) if order.uneven else (0,):
            yield from (((op, w, "b"), then, wait.distance) for then in arrivals)
    for then in arrivals:
        yield from ((first, then, 0) for first in arrivals if first != then)
