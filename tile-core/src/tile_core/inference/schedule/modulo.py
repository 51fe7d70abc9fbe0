"""Iterative modulo scheduling with restarts: from a body and its dependences to a time for each op.

An op of iteration i runs at its time + i * interval. Method: Rau, "Iterative modulo scheduling" (1994): ops are placed by
height, and what collides with a new one is evicted. Places are tried only where an interval that is already placed ends.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .bounds import depth_caps, needed_depth, recurrence_bound, resource_bound
from .model import Body, Dep, Op, Storage, fits

Edge = tuple[str, str, int, bool, int]  # u, v, clocks, counted to the start of v, distance
RESTARTS = 10
BUDGET = 12  # placements of each op before an attempt is given up
GROWTH = 1.02  # of the interval from one round of attempts to the next


@dataclass(frozen=True)
class Timing:
    """When ops of iteration 0 are issued by their stream and started by their unit, and the slots of each ring."""

    interval: int
    issue: Mapping[str, int]
    start: Mapping[str, int]
    depth: Mapping[str, int]


def timing(body: Body, deps: Sequence[Dep], seed: int = 0) -> Timing | None:
    """The smallest interval found, with rings that fit into memory. None: some ring is too shallow for any interval."""
    rng = random.Random(seed)
    resource, _ = resource_bound(body)
    caps = depth_caps(body)
    while (bound := recurrence_bound(body, deps, caps, resource)) is not None:
        found = _search(body, deps, caps, bound, rng)
        if found is None or fits(body, found.depth):
            return found
        largest = _largest(body, found.depth)
        if largest is None:
            return None
        # it needs less next time: this ring alone takes too much
        caps[largest.name] = min(caps[largest.name], found.depth[largest.name] - 1)
    return None


def _search(
    body: Body, deps: Sequence[Dep], caps: Mapping[str, int], bound: int, rng: random.Random
) -> Timing | None:
    interval = bound
    while interval < 3 * bound:
        found = None
        for attempt in range(RESTARTS):
            a = Attempt(body, deps, caps, interval)
            if a.run(rng, 0.1 * (1 + attempt % 8) if attempt else 0):
                times = a.settled()
                if fits(body, times.depth):
                    return times
                found = found or times
        if found is not None:
            return found
        interval = max(interval + 1, int(interval * GROWTH))
    return None


def _largest(body: Body, depth: Mapping[str, int]) -> Storage | None:
    """The largest ring of a space that overflows, if one can shrink."""

    def tight(s: Storage) -> bool:
        return not fits(body, {n: depth[n] if body.tile[n].space == s.space else 1 for n in depth})

    rings = [s for s in body.storage if not s.carried and depth[s.name] > s.least and tight(s)]
    return max(rings, key=lambda s: s.bytes * depth[s.name], default=None)


def overlap(a: int, la: int, b: int, lb: int, interval: int) -> bool:
    """Whether two stretches of time meet when both are repeated at each interval."""
    return bool(la and lb) and ((b - a) % interval < la or (a - b) % interval < lb)


@dataclass
class Attempt:
    """One interval: ops are placed until all stand or the budget is spent."""

    body: Body
    deps: Sequence[Dep]
    caps: Mapping[str, int]
    interval: int
    issue: dict[str, int] = field(default_factory=dict[str, int])
    start: dict[str, int] = field(default_factory=dict[str, int])
    last: dict[str, int] = field(default_factory=dict[str, int])
    into: dict[str, list[Edge]] = field(default_factory=dict[str, "list[Edge]"])
    out: dict[str, list[Edge]] = field(default_factory=dict[str, "list[Edge]"])

    def __post_init__(self) -> None:
        ops = self.body.op
        self.into, self.out = {n: [] for n in ops}, {n: [] for n in ops}
        for d in self.deps:
            edge = (d.u, d.v, *self.body.weight(d), d.at(self.caps))
            self.into[d.v].append(edge)
            self.out[d.u].append(edge)
        self.mates = {n: [m for m in ops if m != n and self.body.fifo(n, m)] for n in ops}
        self.users = {n: [m for m in ops if o.unit and ops[m].unit == o.unit] for n, o in ops.items()}
        self.fellows = {n: [m for m in ops if ops[m].stream == o.stream] for n, o in ops.items()}

    def run(self, rng: random.Random, noise: float) -> bool:
        """Whether every op found a place. ``noise``: share of the interval by which heights are shaken."""
        height = {n: h + noise * self.interval * rng.random() for n, h in self._heights().items()}
        order = sorted(self.body.op, key=lambda n: -height[n])
        for _ in range(BUDGET * len(order)):
            n = next((m for m in order if m not in self.start), None)
            if n is None:
                return True
            self.place(n)
        return len(self.start) == len(order)

    def settled(self) -> Timing:
        """The times from 0, with copies as late as their readers allow."""
        low = min(self.issue.values())
        self.issue = {n: t - low for n, t in self.issue.items()}
        self.start = {n: t - low for n, t in self.start.items()}
        for o in self.body.ops:
            if o.asynchronous and o.writes and not o.updates and self.body.observed(o.name) == "signal":
                self.delay(o)
        depth = needed_depth(self.body, self.deps, self.interval, self.issue, self.start)
        return Timing(self.interval, self.issue, self.start, depth)

    def _heights(self) -> dict[str, int]:
        """Clocks from each op to the end of an iteration. The interval has no positive cycle, so this ends."""
        h, moved = dict.fromkeys(self.body.op, 0), True
        while moved:
            moved = False
            for n in reversed(self.body.op):
                best = max((h[v] + w - self.interval * d for _, v, w, _, d in self.out[n]), default=0)
                if best > h[n]:
                    h[n], moved = best, True
        return h

    def earliest(self, n: str) -> tuple[int, int]:
        """Clock at which ``n`` may be issued, and started, after the ops that stand."""
        ready = begin = 0
        for u, _, w, to_start, d in self.into[n]:
            if u in self.start and u != n:
                t = self.start[u] + w - self.interval * d
                if not to_start:
                    ready = max(ready, t)
                begin = max(begin, t)
        return ready, max(ready, begin)

    def place(self, n: str) -> None:
        """Put ``n`` at its first free place, or where it must be, and drop what is then wrong."""
        ready, begin = self.earliest(n)
        if n in self.last:
            begin = max(begin, self.last[n] + 1)
        spot = self._find(n, ready, begin) or (max(ready, begin), begin)
        self.issue[n], self.start[n] = spot
        self.last[n] = spot[1]
        for m in list(self.start):
            if m != n and (self._collide(n, m) or (m in self.mates[n] and self.unordered(n, m))):
                self.drop(m)
        for u, v, w, to_start, d in self.out[n] + self.into[n]:
            if u in self.start and v in self.start and u != v:
                at = self.start[v] if to_start else self.issue[v]
                if at + self.interval * d < self.start[u] + w:
                    self.drop(v if u == n else u)

    def drop(self, m: str) -> None:
        del self.issue[m], self.start[m]

    def _find(self, n: str, ready: int, begin: int) -> tuple[int, int] | None:
        o, ops = self.body.op[n], self.body.op
        ends = [self.start[m] + ops[m].busy for m in self.users[n] if m in self.start]
        ends += [self.issue[m] + ops[m].hold for m in self.fellows[n] if m in self.start]
        for s in sorted({begin} | {begin + (e - begin) % self.interval for e in ends}):
            if self.taken(o, s):
                continue
            t = self.issue_slot(o, ready, s)
            if t is not None and not any(
                self._swapped(s, t, self.start[m], self.issue[m]) for m in self.mates[n] if m in self.start
            ):
                return t, s
        return None

    def taken(self, o: Op, s: int) -> bool:
        """Whether the unit of ``o`` is busy with another op at ``s``."""
        return any(
            overlap(s, o.busy, self.start[m], self.body.op[m].busy, self.interval)
            for m in self.users[o.name]
            if m in self.start and m != o.name
        )

    def issue_slot(self, o: Op, ready: int, s: int) -> int | None:
        """The latest clock in [ready, s] at which the stream of ``o`` can issue it."""
        same = [(self.issue[m], self.body.op[m].hold) for m in self.fellows[o.name] if m in self.start]
        points = [s]
        if o.asynchronous:
            before = {s - (s - t + o.hold) % self.interval for t, _ in same}
            after = {s - (s - t - hold) % self.interval for t, hold in same}
            points = sorted({s} | before | after, reverse=True)
        for t in points:
            if ready <= t <= s and not any(overlap(t, o.hold, x, hold, self.interval) for x, hold in same):
                return t
        return None

    def _collide(self, n: str, m: str) -> bool:
        o, p = self.body.op[n], self.body.op[m]
        on_unit = (
            o.unit
            and o.unit == p.unit
            and overlap(self.start[n], o.busy, self.start[m], p.busy, self.interval)
        )
        return bool(on_unit) or (
            o.stream == p.stream and overlap(self.issue[n], o.hold, self.issue[m], p.hold, self.interval)
        )

    def unordered(self, n: str, m: str) -> bool:
        """Queue order must be issue order."""
        return self._swapped(self.start[n], self.issue[n], self.start[m], self.issue[m])

    def _swapped(self, s: int, t: int, other: int, issued: int) -> bool:
        return (s - other) // self.interval != (t - issued) // self.interval

    def delay(self, o: Op) -> None:
        """Move a copy as late as its first readers allow, so that its data lies about for less long."""
        limits = [
            (self.start[v] if to_start else self.issue[v]) + self.interval * d - w
            for _, v, w, to_start, d in self.out[o.name]
            if v != o.name
        ]
        was = self.issue[o.name], self.start[o.name]
        if not limits or min(limits) <= was[1]:
            return
        latest = min(limits)
        self.drop(o.name)
        ready, _ = self.earliest(o.name)
        others = [self.start[m] for m in self.users[o.name] if m in self.start]
        points = {latest} | {latest - (latest - s) % self.interval - o.busy for s in others}
        for s in sorted(points, reverse=True):
            t = None if s <= was[1] or self.taken(o, s) else self.issue_slot(o, ready, s)
            if t is None:
                continue
            self.issue[o.name], self.start[o.name] = t, s
            if not any(self.unordered(o.name, m) for m in self.mates[o.name]):
                return
            self.drop(o.name)
        self.issue[o.name], self.start[o.name] = was
