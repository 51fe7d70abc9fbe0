"""Shorter intervals for orders that were found: takes times, keeps who goes before whom, and moves all as close as that allows.

With the order on streams and units fixed, the shortest interval is the largest ratio of clocks to distance over the cycles of
a graph, so no search is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .bounds import least_interval
from .model import RELAY, Body, Dep, Op, done
from .timing import Timing

Point = tuple[str, bool]  # an op, and whether its start is meant rather than its issue
Link = tuple[Point, Point, int, int]  # from, to, clocks, distance


def compacted(
    body: Body,
    deps: Sequence[Dep],
    depth: Mapping[str, int],
    times: Timing,
    least: int,
) -> Timing | None:
    """The same order in the shortest interval of at least ``least``; None if rings are too shallow for it."""
    links = list(order_links(body, deps, depth, times))
    nodes = points(body)
    interval = least_interval(nodes, links, least, times.interval)
    if interval is None:
        return None
    value = dict.fromkeys(nodes, 0)
    moved = True
    while moved:
        moved = False
        for a, b, w, d in links:
            at = value[a] + w - interval * d
            if at > value[b]:
                value[b], moved = at, True
    return Timing(
        interval,
        {o.name: value[_point(o, False)] for o in body.ops},
        {o.name: value[_point(o, True)] for o in body.ops},
    )


def points(body: Body) -> list[Point]:
    """What has a time of its own."""
    return list(dict.fromkeys(_point(o, s) for o in body.ops for s in (False, True)))


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


def _point(o: Op, start: bool) -> Point:
    """A synchronous op is started when it is issued."""
    return o.name, start and o.asynchronous


def order_links(body: Body, deps: Sequence[Dep], depth: Mapping[str, int], times: Timing) -> Iterator[Link]:
    """What dependences and the order on streams and units demand."""
    for d in deps:
        weight, to_start = body.weight(d)
        u, v = body.op[d.u], body.op[d.v]
        yield _point(u, True), _point(v, to_start), weight, d.at(depth)
    for o in body.ops:
        if o.asynchronous:
            yield _point(o, False), _point(o, True), 0, 0
    for s in body.streams:
        mine = [o for o in body.ops if o.stream == s.name and o.hold]
        yield from _round(mine, times.issue, times.interval, False)
    for unit in dict.fromkeys(o.unit for o in body.ops if o.unit):
        yield from _round(
            [o for o in body.ops if o.unit == unit and o.busy], times.start, times.interval, True
        )


def _round(ops: Sequence[Op], at: Mapping[str, int], interval: int, start: bool) -> Iterator[Link]:
    """Each op after the one before it on a stream or unit, and the first after the last of the iteration before."""
    order = sorted(ops, key=lambda o: at[o.name] % interval)
    for k, y in enumerate(order):
        x = order[k - 1]
        if x is not y:
            gap = at[x.name] // interval - at[y.name] // interval + (0 if k else 1)
            yield _point(x, start), _point(y, start), x.busy if start else x.hold, gap
