"""Registers of products are written before the products that run together, not between them.

Of two asynchronous products G and H of one queue, where H is issued while G runs, the accumulators and register operands of H
must not be written after G was issued: the compiler then waits for G first (NVRTC's C7515 and C7517), and nothing overlaps. Behind
a wait for an older product NVRTC 13 does not mind, but that is nowhere said, so it is used only where it gains much. Takes
times, moves such writes, and what they need, in front of G, and gives the shortest times of that order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from .model import GROUP, PIN, REGISTER, Body, Dep, Op
from .patience import waits
from .timing import Timing

Instance = tuple[str, int]  # an op, and which iteration of it


def moved(body: Body, deps: tuple[Dep, ...], times: Timing, behind_waits: bool = True) -> Timing | None:
    """The order with the writes in front; None if none stands between products. Clocks are of no meaning, only the order is.

    ``behind_waits``: also writes before which the stream waits for another product.
    """
    issue = dict(times.issue)
    changed = False
    for first, _, writes in _disturbed(body, deps, times, behind_waits):
        ahead = _with_sources(body, deps, times, first, writes)
        if ahead is None:
            continue
        begin = _at(times, first)
        for n, (op, k) in enumerate(reversed(ahead), 1):
            issue[op], changed = begin - n - k * times.interval, True
    if not changed:
        return None
    start = {n: t if body.op[n].asynchronous else issue[n] for n, t in times.start.items()}
    return replace(times, issue=issue, start=start)


def disturbed(body: Body, deps: Sequence[Dep], times: Timing) -> frozenset[tuple[str, str, str]]:
    """(G, H, op) of all writes to registers of H between products G and H that run together."""
    found = _disturbed(body, tuple(deps), times, True)
    return frozenset((first[0], h, x[0]) for first, h, writes in found for x in writes)


def _disturbed(
    body: Body, deps: tuple[Dep, ...], times: Timing, behind_waits: bool
) -> Iterator[tuple[Instance, str, list[Instance]]]:
    """(G, H of iteration 0, writes between them) of products that run together."""
    for g, h in together(body):
        first = (g, (times.issue[h] - times.issue[g]) // times.interval)
        between = list(_between(body, times, first, h))
        if any(_waits(deps, first, x) for x in between):
            continue
        own = writers(body, h)
        heard = min((_at(times, x) for x in between if waits(body, deps, body.op[x[0]])), default=None)
        until = times.issue[h] if behind_waits or heard is None else heard
        writes = [x for x in between if x[0] in own and _at(times, x) < until]
        if writes:
            yield first, h, writes


def together(body: Body) -> Iterator[tuple[str, str]]:
    """Products that one queue may run together."""
    products = [o.name for o in body.ops if o.asynchronous and body.observed(o.name) == GROUP]
    for h in products:
        yield from ((g, h) for g in products if g != h and body.fifo(g, h))


def writers(body: Body, product: str) -> tuple[str, ...]:
    """Synchronous ops of its stream that write the registers of a product."""
    own, stream = _registers(body, body.op[product]), body.op[product].stream
    return tuple(
        o.name
        for o in body.ops
        if o.stream == stream and not o.asynchronous and not o.seldom and own & {*o.writes, *o.updates}
    )


def _registers(body: Body, o: Op) -> set[str]:
    used = {*o.writes, *o.updates, *(r.name for r in o.reads)}
    return {n for n in used if n in body.tile and body.tile[n].space == REGISTER}


def _at(times: Timing, x: Instance) -> int:
    return times.issue[x[0]] + x[1] * times.interval


def _between(body: Body, times: Timing, first: Instance, last: str) -> Iterator[Instance]:
    """Synchronous instances of the stream that are issued after ``first`` and before iteration 0 of ``last``."""
    begin, end = _at(times, first), times.issue[last]
    for o in body.ops:
        if o.stream == body.op[last].stream and not o.asynchronous:
            k = (end - 1 - times.issue[o.name]) // times.interval
            while _at(times, (o.name, k)) > begin:
                yield o.name, k
                k -= 1


def _waits(deps: tuple[Dep, ...], product: Instance, x: Instance) -> bool:
    """Whether ``x`` needs the end of ``product``, or of a later one of its iterations."""
    return any(
        d.u == product[0] and d.v == x[0] and x[1] - d.distance >= product[1] and d.kind != PIN for d in deps
    )


def _with_sources(
    body: Body, deps: tuple[Dep, ...], times: Timing, first: Instance, writes: list[Instance]
) -> list[Instance] | None:
    """``writes`` and all after ``first`` that they come after, in order; None if a product is among that."""
    begin, found, work = _at(times, first), dict.fromkeys(writes), list(writes)
    for x in work:  # grows while it is walked
        for d in deps:
            before = (d.u, x[1] - d.distance)
            if d.v != x[0] or d.ring or before in found or _at(times, before) <= begin:
                continue
            if body.op[d.u].stream != body.op[x[0]].stream or body.op[d.u].asynchronous:
                return None
            found[before] = None
            work.append(before)
    by_time: Mapping[Instance, int] = {x: _at(times, x) for x in found}
    return sorted(found, key=lambda x: by_time[x])
