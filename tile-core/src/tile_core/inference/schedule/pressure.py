"""Registers that tiles of a stream take at once: from times, the most over an interval.

A tile is alive from the first op of an iteration that touches it, or all the time if that op needs what was there before, until
the last op is over that does. Two tiles that are never alive together may have the same registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from .model import REGISTER, Body, Op
from .timing import Timing


def pressure(body: Body, times: Timing, stream: str) -> int:
    """32-bit registers of a thread of ``stream``."""
    sizes = _sizes(body, stream)
    lives = {name: _life(body, times, name) for name in sizes}
    return max(
        (
            sum(size for name, size in sizes.items() if _alive(lives[name], at, times.interval))
            for at in {begin % times.interval for begin, _ in lives.values()}
        ),
        default=0,
    )


def excess(body: Body, times: Timing) -> int:
    """Registers that a stream's tiles take beyond its budget; 0 if all are within theirs."""
    return max(
        (max(0, pressure(body, times, s.name) - s.budget) for s in body.streams if s.budget), default=0
    )


def _sizes(body: Body, stream: str) -> dict[str, int]:
    threads = body.stream[stream].threads
    mine = (t for t in body.storage if t.space == REGISTER and t.stream == stream)
    return {t.name: ceil(t.bytes / (4 * threads)) for t in mine}


def _life(body: Body, times: Timing, name: str) -> tuple[int, int]:
    """(first clock, clock after the last) of what iteration 0 keeps in a tile."""
    users = sorted(_users(body, name), key=lambda o: times.issue[o.name])
    if not users:
        return 0, 0
    first = users[0]
    if any(r.name == name for r in first.reads):
        return 0, times.interval
    ends = (times.start[o.name] + o.span if o.asynchronous else times.issue[o.name] + o.hold for o in users)
    return times.issue[first.name], max(ends)


def _users(body: Body, name: str) -> Iterator[Op]:
    for o in body.ops:
        if name in o.writes or name in o.updates or any(r.name == name for r in o.reads):
            yield o


def _alive(life: tuple[int, int], at: int, interval: int) -> bool:
    begin, end = life
    return (at - begin) % interval < end - begin
