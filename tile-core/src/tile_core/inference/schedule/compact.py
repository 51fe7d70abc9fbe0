"""Shorter intervals for orders that were found: takes times, keeps who goes before whom, and moves all as close as that allows.

With the order on streams and units fixed, the shortest interval is the largest ratio of clocks to distance over the cycles of
a graph, so no search is needed.
"""

from __future__ import annotations

from collections.abc import Sequence

from .bounds import earliest
from .links import Links
from .model import RELAY, Body, done
from .timing import Timing


def compacted(links: Links, times: Timing, least: int) -> Timing | None:
    """The same order in the shortest interval of at least ``least``; None if rings are too shallow for it."""
    found = earliest(len(links.points), links.of(times), least)
    if found is None:
        return None
    return _timing(links, *found)


def _timing(links: Links, interval: int, clocks: Sequence[int]) -> Timing:
    at = {(name, start): clock for (name, start), clock in zip(links.points, clocks, strict=True)}
    issue = {o.name: at[o.name, False] for o in links.body.ops}
    start = {o.name: at[o.name, o.asynchronous] for o in links.body.ops}
    return Timing(interval, issue, start)


def soonest(links: Links, least: int) -> Timing | None:
    """The times of ops that need wait for nothing but what they depend on, at an interval of at least ``least``."""
    found = earliest(len(links.points), links.fixed, least)
    return None if found is None else _timing(links, *found)


def in_program_order(body: Body) -> Timing:
    """Times in which nothing overlaps: the order of the body, each op after the one before it, and its relay after it."""
    at: dict[str, int] = {}
    now = 0
    for o in (o for o in body.ops if o.kind != RELAY):
        for x in (o, body.op.get(done(o.name))):
            if x is not None:
                at[x.name] = now
                now += max(1, x.span, x.hold)
    return Timing(max(1, now), at, dict(at))
