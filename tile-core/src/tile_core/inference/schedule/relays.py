"""Relays: ops that see the end of an op which only its own stream can see, and tell the other streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from .dependences import unique
from .model import GROUP, REGISTER, RELAY, Body, Dep, Op, done
from .patience import keeps
from .timing import Timing, overlap


def relayed(body: Body, deps: Sequence[Dep]) -> tuple[Body, tuple[Dep, ...]]:
    """Where only its own stream can see the end of u, an op there that sees it and tells the others."""
    out: list[Dep] = []
    made: dict[str, Op] = {}
    for d in summed(body, deps):
        u, v = body.op[d.u], body.op[d.v]
        if not (u.asynchronous and body.observed(d.u) == GROUP and u.stream != v.stream):
            out.append(d)
            continue
        if d.u not in made:
            made[d.u] = Op(done(d.u), u.stream, latency=body.relay, kind=RELAY)
            out.append(Dep(d.u, done(d.u), 0, "DONE", d.storage))
        out.append(replace(d, u=done(d.u)))
    return replace(body, ops=(*body.ops, *made.values())), unique(out)


def summed(body: Body, deps: Sequence[Dep]) -> Iterator[Dep]:
    """The dependences with the end of all sums in the place of the end of what began them.

    Nobody stops between ops that add to the same sums: it would be one more wait for the threads that use all of them.
    """
    for d in deps:
        yield replace(d, u=_last(body, d.u)) if d.kind == "WAR" and d.u != d.v else d


def _last(body: Body, u: str) -> str:
    """The last of the ops of a queue that add to the sums which ``u`` begins, or adds to behind one that does."""
    sums = {x for x in body.op[u].updates if body.tile[x].space == REGISTER}
    same = [x for x in body.queue(u) if sums & {*body.op[x].updates}] if body.in_order(u) else []
    begins = [n for n, x in enumerate(same) if not sums & {r.name for r in body.op[x].reads}]
    before = [n for n in begins if n <= same.index(u)]
    if not before:
        return u
    return same[min((n for n in begins if n > before[-1]), default=len(same)) - 1]


def late(body: Body, deps: Sequence[Dep], times: Timing) -> Timing:
    """The times with relays as late as the rest of their stream can do without them, where slots are there for that.

    A relay stops its stream until an op has ended. If somebody else in the stream waits for that op, that is early enough. If
    nobody does, the unit would be idle meanwhile; with its next op already issued it is not.
    """
    for o in body.ops:
        if o.kind == RELAY:
            needed = [times.issue[d.v] + times.interval * d.at(times.depth) for d in _waiting(body, deps, o)]
            at = min(needed) - 1 if needed else _behind(body, times, o)
            moved = replace(times, issue={**times.issue, o.name: at}, start={**times.start, o.name: at})
            if all(keeps(body, d, times.depth, moved) for d in deps if d.u == o.name):
                times = moved
    return times


def _watched(relay: Op) -> str:
    return relay.name.removesuffix(done(""))


def _waiting(body: Body, deps: Sequence[Dep], relay: Op) -> Iterator[Dep]:
    """For whom else in its stream the end of the op that a relay watches is waited for."""
    u = _watched(relay)
    for d in deps:
        if d.u == u and d.v != relay.name and not d.queued and body.op[d.v].stream == relay.stream:
            yield d


def _behind(body: Body, times: Timing, relay: Op) -> int:
    """The first clock at which the stream is free for the relay after the next op of the queue has been issued."""
    u, interval = _watched(relay), times.interval
    first = times.issue[u]
    after = min(
        first + ((times.issue[x] - first - 1) % interval) + 1 + body.op[x].hold for x in body.queue(u)
    )
    ready = max(after, times.issue[relay.name])
    others = [
        (times.issue[o.name], o.hold) for o in body.ops if o.stream == relay.stream and o.name != relay.name
    ]
    for at in sorted({ready} | {ready + (t + hold - ready) % interval for t, hold in others}):
        if not any(overlap(at, relay.hold, t, hold, interval) for t, hold in others):
            return at
    return times.issue[relay.name]
