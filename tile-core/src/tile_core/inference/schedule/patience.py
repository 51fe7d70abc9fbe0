"""Ops as late as they can be, where that helps: takes times, gives others with the same interval.

A stream that waits for a product has nothing to do meanwhile. Ops whose results are not needed for long go there. Of the rest,
those that wait go behind those that need not: the clocks of an engine that several groups of threads share are not known, and a
group whose product is held up by another's then has still something to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from .compact import compacted
from .links import Links
from .model import GROUP, PIN, RELAY, Body, Dep, Op
from .timing import Timing


def patient(links: Links, times: Timing) -> Timing:
    """The times with ops in the shadow of products, and waits behind what need not wait."""
    body, deps, depth = links.body, links.deps, links.depth
    for stream in body.streams:
        own = [o for o in body.ops if o.stream == stream.name and o.kind != RELAY and o.hold]
        for o in own:
            order = _shaded(links, times, own, o)
            found = compacted(links, order, times.interval) if order else None
            if found is not None and found.interval == times.interval:
                times = found
        for _ in range(len(own) ** 2):  # each exchange moves a wait one place back: there are at most so many
            better = next(_exchanged(body, deps, depth, times, own), None)
            if better is None:
                break
            times = better
    return times


def _following(times: Timing, own: Sequence[Op], o: Op) -> list[Op]:
    """The other ops of a stream, from ``o`` on."""
    return sorted(
        (x for x in own if x is not o),
        key=lambda x: (times.issue[x.name] - times.issue[o.name]) % times.interval,
    )


def _shaded(links: Links, times: Timing, own: Sequence[Op], o: Op) -> Timing | None:
    """The order with ``o`` before the last op that waits before anybody needs ``o``; None if it has no such place."""
    body, deps, depth = links.body, links.deps, links.depth
    if o.asynchronous or waits(body, deps, o):
        return None
    needed = min(
        (times.issue[d.v] + times.interval * d.at(depth) for d in deps if d.u == o.name and d.v != o.name),
        default=0,
    )
    at = None
    for x in _following(times, own, o):
        here = times.issue[o.name] + (times.issue[x.name] - times.issue[o.name]) % times.interval
        if here >= needed:
            break
        if not x.asynchronous and waits(body, deps, x):
            at = here - 1
    if at is None or at <= times.issue[o.name]:
        return None
    return replace(times, issue={**times.issue, o.name: at}, start={**times.start, o.name: at})


def _exchanged(
    body: Body, deps: Sequence[Dep], depth: Mapping[str, int], times: Timing, own: Sequence[Op]
) -> Iterator[Timing]:
    """An op that waits behind its neighbour that does not."""
    order = sorted(own, key=lambda o: times.issue[o.name] % times.interval)
    for w, x in zip(order, (*order[1:], *order[:1]), strict=True):
        if w is x or w.asynchronous or x.asynchronous or not waits(body, deps, w) or waits(body, deps, x):
            continue
        gap = (times.issue[x.name] - times.issue[w.name]) % times.interval
        new = {w.name: times.issue[w.name] + gap + x.hold - w.hold, x.name: times.issue[x.name] - gap}
        moved = replace(times, issue={**times.issue, **new}, start={**times.start, **new})
        if all(keeps(body, d, depth, moved) for d in deps if d.u in new or d.v in new):
            yield moved


def waits(body: Body, deps: Sequence[Dep], o: Op) -> bool:
    """Whether an op begins when an engine's op of its own stream has ended."""
    return any(
        d.v == o.name
        and not d.queued
        and body.op[d.u].asynchronous
        and body.op[d.u].stream == o.stream
        and body.observed(d.u) == GROUP
        for d in deps
    )


def keeps(body: Body, d: Dep, depth: Mapping[str, int], times: Timing) -> bool:
    """Whether the times keep a dependence, with so many slots."""
    weight, to_start = body.weight(d)
    at = times.start[d.v] if to_start else times.issue[d.v]
    since = times.issue[d.u] if d.kind == PIN else times.start[d.u]
    return since + weight <= at + times.interval * d.at(depth)
