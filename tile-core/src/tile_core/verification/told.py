"""What the plan says of tokens that code is emitted for: who arrives at each, and which tiles engines touch once they were told."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..expr import Buffer
from ..inference.schedule.model import SIGNAL, Dep
from ..inference.schedule.order import Event, Order
from ..inference.schedule.program import Schedule, Token
from ..inference.schedule.slots import order_of


def participants(schedule: Schedule, token: Token, subgroup: int, group: int) -> dict[str, int]:
    """How many arrive for each producer of a token, by its name. Copies arrive once, with all their bytes: the first in its stream
    does; an engine that signals by itself once for each ``group`` of threads; relays that are told once, too; else each
    ``subgroup`` of the threads that do what is told.
    """
    place, out = (
        {s.op: n for steps in schedule.streams.values() for n, s in enumerate(steps)},
        dict[str, int](),
    )
    for u in sorted(token.producers, key=place.__getitem__):
        stream = schedule.body.stream[schedule.ops[u].stream]
        by_itself = schedule.ops[u].asynchronous and schedule.body.observed(u) == SIGNAL
        if by_itself and stream.threads == 1:
            out[u] = 0 if any(out.values()) else 1
        else:
            out[u] = stream.threads // (group if by_itself or schedule.told_once(token, u) else subgroup)
    return out


def partial_steps(stage: int, apart: int, trips: int | None) -> int:
    """How often an op stands beside its loop: in ``apart`` kernel steps before it, those of which it has an iteration, and in those
    behind it that end iterations. ``trips``: of the loop, if that is known; steps without an iteration are left out.
    """
    before = sum(1 for n in range(stage, apart) if trips is None or n < trips)
    behind = sum(1 for n in range(stage) if trips is None or stage - n <= trips)
    return before + behind


@dataclass
class Told:
    """Tiles that a token tells of: ``all`` that threads have used, and those that an engine ``reads`` or ``writes`` then."""

    all: set[Buffer] = field(default_factory=set[Buffer])
    reads: set[Buffer] = field(default_factory=set[Buffer])
    writes: set[Buffer] = field(default_factory=set[Buffer])


def tiles_told(schedule: Schedule) -> dict[str, Told]:
    """By token what other streams learn by it that threads have done."""
    order, out = order_of(schedule), dict[str, Told]()
    for d in schedule.deps:
        tile = schedule.body.tile[d.storage].buffer if schedule.body.shared(d.storage) else None
        u, v = schedule.ops[d.u], schedule.ops[d.v]
        if tile is None or u.asynchronous or u.stream == v.stream:
            continue
        for first, then in order.demands(d):
            if order.uneven and first[1] != 1 and 1 in order.warps(d.u):
                continue  # what tells of all warps does so of the one that tells for others, too
            told = out.setdefault(_first_told(schedule, order, d, first, then), Told())
            told.all.add(tile.storage)
            if v.asynchronous:
                (told.reads if d.kind == "RAW" else told.writes).add(tile.storage)
    return out


def _first_told(schedule: Schedule, order: Order, d: Dep, first: Event, then: Event) -> str:
    """The token by which what a stream has done gets to another one, on the way that keeps the dependence; "" if there is none."""
    way = order.chain(first, then, d.at(schedule.depth)) or []
    own = schedule.ops[d.u].stream
    return next((wait.token for op, wait in way if schedule.ops[op].stream != own), "")
