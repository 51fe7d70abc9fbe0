"""Ops as late as they can be, where that helps: takes times, exchanges neighbours in a stream.

Ops that wait for products go behind those that need not: the clocks of an engine that several groups of threads share are not
known, and a group whose product is held up by another's then has still something to do. Ops whose results are not used for
long go behind others, too: fewer iterations are then in flight.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from .model import GROUP, RELAY, Body, Dep, Op
from .timing import Timing


LONG = 4  # parts of an interval


def patient(body: Body, deps: Sequence[Dep], times: Timing) -> Timing:
    """The times with ops that wait, or that nobody waits for, behind others, as far as dependences and rings allow."""
    for stream in body.streams:
        own = [o for o in body.ops if o.stream == stream.name and o.kind != RELAY and o.hold]
        for _ in range(len(own) ** 2):  # each exchange moves an op one place back: there are at most so many
            better = next(_exchanged(body, deps, times, own), None)
            if better is None:
                break
            times = better
    return times


def _exchanged(body: Body, deps: Sequence[Dep], times: Timing, own: Sequence[Op]) -> Iterator[Timing]:
    order = sorted(own, key=lambda o: times.issue[o.name] % times.interval)
    for w, x in zip(order, (*order[1:], *order[:1]), strict=True):
        if w is x or w.asynchronous or not _better(body, deps, times, w, x):
            continue
        gap = (times.issue[x.name] - times.issue[w.name]) % times.interval
        issue = {w.name: times.issue[w.name] + gap + x.hold - w.hold, x.name: times.issue[x.name] - gap}
        start = {o.name: t for o, t in zip((w, x), issue.values(), strict=True) if not o.asynchronous}
        moved = replace(times, issue={**times.issue, **issue}, start={**times.start, **start})
        if all(keeps(body, d, moved) for d in deps if d.u in issue or d.v in issue):
            yield moved


def _better(body: Body, deps: Sequence[Dep], times: Timing, w: Op, x: Op) -> bool:
    """Whether ``w`` had better stand behind ``x``, which follows it."""
    if waits(body, deps, w):
        return not x.asynchronous and not waits(body, deps, x)
    used = [
        times.issue[d.v] + times.interval * d.at(times.depth) - times.issue[w.name] - w.span
        for d in deps
        if d.u == w.name and d.v != w.name
    ]
    return min(used, default=0) > times.interval // LONG


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


def keeps(body: Body, d: Dep, times: Timing) -> bool:
    """Whether the times keep a dependence, with the slots that there are."""
    weight, to_start = body.weight(d)
    at = times.start[d.v] if to_start else times.issue[d.v]
    return times.start[d.u] + weight <= at + times.interval * d.at(times.depth)
