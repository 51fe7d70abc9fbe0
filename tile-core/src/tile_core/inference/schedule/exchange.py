"""Shorter intervals by exchanging neighbours: takes times, gives better ones as long as an exchange helps.

With the order on streams and units fixed, the slowest cycle of dependences and order is what bounds the interval. Only another
order of two neighbours that are both on it can make it shorter (Nowicki and Smutnicki, "A fast taboo search algorithm for the job
shop problem", 1996).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from .bounds import critical_cycle, relaxed
from .compact import compacted
from .links import Links
from .model import Body, Op
from .pressure import excess
from .timing import Timing

MOST = 300  # orders that are tried


def exchanged(links: Links, times: Timing, bound: int) -> Timing:
    """The times after all exchanges that helped, one after the other."""
    left = MOST
    while times.interval > bound and left:
        for order in _neighbours(links, times):
            left -= 1
            if _shorter(links, order, times.interval):
                found = compacted(links, order, bound)
                if found is not None and excess(links.body, found) <= excess(links.body, times):
                    times = found
                    break
            if not left:
                return times
        else:
            return times
    return times


def _shorter(links: Links, order: Timing, interval: int) -> bool:
    """Whether an order needs less than ``interval``."""
    return not relaxed(len(links.points), links.of(order), interval - 1)[1]


def _neighbours(links: Links, times: Timing) -> Iterator[Timing]:
    """Orders with two neighbours of the slowest cycle exchanged."""
    body, nodes = links.body, links.points
    slow = {nodes[k][0] for k in critical_cycle(len(nodes), links.of(times), times.interval - 1)}
    for s in body.streams:
        mine = [o for o in body.ops if o.stream == s.name and o.hold]
        for x, y in _pairs(mine, times.issue, times.interval, slow):
            yield _before(body, times, x, y)
    for unit in dict.fromkeys(o.unit for o in body.ops if o.unit and o.asynchronous):
        mine = [o for o in body.ops if o.unit == unit and o.busy]
        for x, y in _pairs(mine, times.start, times.interval, slow):
            if x.stream != y.stream:
                yield _before(body, times, x, y)


def _pairs(
    ops: Sequence[Op], at: Mapping[str, int], interval: int, slow: set[str]
) -> Iterator[tuple[Op, Op]]:
    order = sorted(ops, key=lambda o: at[o.name] % interval)
    for k, y in enumerate(order):
        x = order[k - 1]
        if x is not y and x.name in slow and y.name in slow:
            yield x, y


def _before(body: Body, times: Timing, x: Op, y: Op) -> Timing:
    """The order with ``y`` just before ``x``, which stands just before it. Clocks are of no meaning, only the order is."""
    issue = {n: 2 * t for n, t in times.issue.items()}
    start = {n: 2 * t for n, t in times.start.items()}
    if x.stream == y.stream:
        gap = (times.issue[y.name] - times.issue[x.name]) % times.interval
        issue[y.name] -= 2 * gap + 1
    if not y.asynchronous:
        start[y.name] = issue[y.name]
    elif x.asynchronous and x.unit == y.unit:
        gap = (times.start[y.name] - times.start[x.name]) % times.interval
        start[y.name] -= 2 * gap + 1
    return replace(times, interval=2 * times.interval, issue=issue, start=start)
