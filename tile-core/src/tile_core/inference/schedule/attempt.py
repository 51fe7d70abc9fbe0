"""One attempt of iterative modulo scheduling: a place for each op at one interval, by a given order of importance.

Method: Rau, "Iterative modulo scheduling" (1994): the most important op without a place gets its first free one, or the place
where it must be, and what collides with it there is evicted. Places are tried only where something that stands ends.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from .bounds import needed_depth
from .links import Links
from .model import SIGNAL, Body, Dep
from .timing import Timing, overlap

Edge = tuple[
    int, int, int, bool, int
]  # u, v, clocks, counted to the start of v rather than its issue, distance
BUDGET = 4  # placements of each op before an attempt is given up
SHORT = 64  # iterations of a loop in which blocks that read the same do not lose touch


@dataclass(frozen=True)
class Tables:
    """What all attempts at one body share, with ops as numbers. Rings have as many slots as ``caps`` allow."""

    body: Body
    deps: Sequence[Dep]
    caps: Mapping[str, int]

    @cached_property
    def links(self) -> Links:
        return Links(self.body, self.deps, self.caps)

    @cached_property
    def names(self) -> list[str]:
        return [o.name for o in self.body.ops]

    @cached_property
    def edges(self) -> list[Edge]:
        number = {n: k for k, n in enumerate(self.names)}
        return [(number[d.u], number[d.v], *self.body.weight(d), d.at(self.caps)) for d in self.deps]

    @cached_property
    def into(self) -> list[list[Edge]]:
        """Edges by target, but those from an op to itself."""
        return [[e for e in self.edges if e[1] == n != e[0]] for n in range(len(self.names))]

    @cached_property
    def out(self) -> list[list[Edge]]:
        """Edges by source, but those from an op to itself."""
        return [[e for e in self.edges if e[0] == n != e[1]] for n in range(len(self.names))]

    @cached_property
    def around(self) -> list[list[Edge]]:
        """Edges by either end, but those from an op to itself."""
        return [out + into for out, into in zip(self.out, self.into, strict=True)]

    @cached_property
    def hold(self) -> list[int]:
        return [o.hold for o in self.body.ops]

    @cached_property
    def busy(self) -> list[int]:
        return [o.busy for o in self.body.ops]

    @cached_property
    def asynchronous(self) -> list[bool]:
        return [o.asynchronous for o in self.body.ops]

    @cached_property
    def near(self) -> list[list[tuple[int, bool, bool, bool]]]:
        """(other op, whether of the same unit, of the same stream, of the same queue) of all that may be in each op's way."""
        return [
            [
                (m, unit, stream, o.asynchronous and x.asynchronous and unit and stream)
                for m, x in enumerate(self.body.ops)
                if m != n
                for unit, stream in ((bool(o.unit) and x.unit == o.unit, x.stream == o.stream),)
                if unit or stream
            ]
            for n, o in enumerate(self.body.ops)
        ]

    @cached_property
    def mates(self) -> list[list[int]]:
        """Other ops of the same queue."""
        return [[m for m, _, _, queue in near if queue] for near in self.near]

    @cached_property
    def users(self) -> list[list[int]]:
        """Other ops of the same unit."""
        return [[m for m, unit, _, _ in near if unit] for near in self.near]

    @cached_property
    def fellows(self) -> list[list[int]]:
        """Other ops of the same stream."""
        return [[m for m, _, stream, _ in near if stream] for near in self.near]

    @cached_property
    def copies(self) -> list[int]:
        """Ops that a signalling engine does, and that nothing but their readers and slots hold."""
        return [
            n
            for n, o in enumerate(self.body.ops)
            if o.asynchronous and o.writes and not o.updates and self.body.observed(o.name) == SIGNAL
        ]

    @cached_property
    def pressed(self) -> list[int]:
        """Those copies that need nothing but tiles, which can have one slot only."""
        ops = self.body.ops
        return [
            n
            for n in self.copies
            if not ops[n].reads and all(self.caps.get(x, 1) == 1 for x in ops[n].writes)
        ]


@dataclass
class Attempt:
    """Ops that stand have an ``issue`` and a ``start``, by number."""

    tables: Tables
    interval: int
    issue: dict[int, int] = field(default_factory=dict[int, int])
    start: dict[int, int] = field(default_factory=dict[int, int])
    last: dict[int, int] = field(default_factory=dict[int, int])

    def run(self, rng: random.Random, noise: float, first: frozenset[int] = frozenset()) -> bool:
        """Whether every op found a place. ``noise``: share of the interval by which importance is shaken.

        ``first``: ops that have no clock to spare, so they are placed before all others.
        """
        height = [h + noise * self.interval * rng.random() for h in self._heights()]
        order = sorted(range(len(height)), key=lambda n: (n not in first, -height[n]))
        for _ in range(BUDGET * len(order)):
            n = next((m for m in order if m not in self.start), None)
            if n is None:
                return True
            self._place(n)
        return len(self.start) == len(order)

    def times(self, later: int = 0) -> Timing:
        """The places found, by name, so many clocks later."""
        names = self.tables.names
        return Timing(
            self.interval,
            {names[n]: t + later for n, t in self.issue.items()},
            {names[n]: t + later for n, t in self.start.items()},
        )

    def _heights(self) -> list[int]:
        """Clocks from each op to the end of an iteration. The interval has no positive cycle, so this ends."""
        h, moved = [0] * len(self.tables.names), True
        while moved:
            moved = False
            for u, v, w, _, d in reversed(self.tables.edges):
                at = h[v] + w - self.interval * d
                if at > h[u] and u != v:
                    h[u], moved = at, True
        return h

    def _earliest(self, n: int, least: int = 0) -> tuple[int, int]:
        """Clock from ``least`` on at which ``n`` may be issued, and started, after the ops that stand."""
        ready = begin = least
        for u, _, w, to_start, d in self.tables.into[n]:
            if u in self.start:
                t = self.start[u] + w - self.interval * d
                if not to_start:
                    ready = max(ready, t)
                begin = max(begin, t)
        return ready, max(ready, begin)

    def _place(self, n: int) -> None:
        """Put ``n`` at its first free place, or where it must be, and drop what is then wrong."""
        ready, begin = self._earliest(n)
        if n in self.last:
            begin = max(begin, self.last[n] + 1)
        self.issue[n], self.start[n] = self._find(n, ready, begin) or (max(ready, begin), begin)
        self.last[n] = self.start[n]
        for m in list(self._colliding(n)):
            self._drop(m)
        for u, v, w, to_start, d in self.tables.around[n]:
            if u in self.start and v in self.start:
                at = self.start[v] if to_start else self.issue[v]
                if at + self.interval * d < self.start[u] + w:
                    self._drop(v if u == n else u)

    def _drop(self, m: int) -> None:
        del self.issue[m], self.start[m]

    def _find(self, n: int, ready: int, begin: int) -> tuple[int, int] | None:
        held, taken, busy = self._held(n), self._taken(n), self.tables.busy[n]
        interval, mates = self.interval, [m for m in self.tables.mates[n] if m in self.start]
        # the stream of n, or its unit, becomes free
        ends = {begin} | {begin + (t + clocks - begin) % interval for t, clocks in held + taken}
        for s in sorted(ends):
            if busy and any((t - s) % interval < busy or (s - t) % interval < clocks for t, clocks in taken):
                continue
            t = self._issue_slot(n, ready, s, held)
            if t is not None and not any(self._swapped(s, t, m) for m in mates):
                return t, s
        return None

    def _taken(self, n: int) -> list[tuple[int, int]]:
        """(start, clocks) of what keeps the unit of ``n`` busy."""
        start, busy = self.start, self.tables.busy
        return [(start[m], busy[m]) for m in self.tables.users[n] if m in start and busy[m]]

    def _held(self, n: int) -> list[tuple[int, int]]:
        """(issue, clocks) of what holds the stream of ``n``."""
        issue, hold = self.issue, self.tables.hold
        return [(issue[m], hold[m]) for m in self.tables.fellows[n] if m in issue and hold[m]]

    def _issue_slot(self, n: int, ready: int, s: int, same: list[tuple[int, int]]) -> int | None:
        """The latest clock in [ready, s] at which the stream of ``n`` can issue it."""
        interval, mine = self.interval, self.tables.hold[n]
        points = [s]
        if self.tables.asynchronous[n]:
            before = {s - (s - t + mine) % interval for t, _ in same}
            after = {s - (s - t - length) % interval for t, length in same}
            points = sorted({s} | before | after, reverse=True)
        for t in points:
            if not ready <= t <= s:
                continue
            for x, length in same:
                if (x - t) % interval < mine or (t - x) % interval < length:
                    break
            else:
                return t
        return None

    def _colliding(self, n: int) -> Iterator[int]:
        """Ops that stand where ``n`` does now: at the same time on its unit or stream, or in another order than issued."""
        busy, hold, interval = self.tables.busy, self.tables.hold, self.interval
        t, s = self.issue[n], self.start[n]
        for m, unit, stream, queue in self.tables.near[n]:
            if m in self.start and (
                (unit and overlap(s, busy[n], self.start[m], busy[m], interval))
                or (stream and overlap(t, hold[n], self.issue[m], hold[m], interval))
                or (queue and self._swapped(s, t, m))
            ):
                yield m

    def _swapped(self, s: int, t: int, m: int) -> bool:
        """Whether an op at (start, issue) would be started in another order than issued, against ``m`` of its queue."""
        return (
            m in self.start and (s - self.start[m]) // self.interval != (t - self.issue[m]) // self.interval
        )

    def _latest(self, n: int) -> int | None:
        """Clock at which ``n`` may be started at the latest, before the ops that stand; None if any will do."""
        limits = [
            (self.start[v] if to_start else self.issue[v]) + self.interval * d - w
            for _, v, w, to_start, d in self.tables.out[n]
            if v in self.start
        ]
        return min(limits, default=None)

    def delay(self, n: int) -> None:
        """Move a copy as late as others allow, so that its data lies about for less long."""
        latest, was = self._latest(n), (self.issue[n], self.start[n])
        if latest is None or latest <= was[1]:
            return
        self._drop(n)
        ready, _ = self._earliest(n)
        held, taken, busy = self._held(n), self._taken(n), self.tables.busy[n]
        before = {latest - (latest - s) % self.interval - busy for s, _ in taken}
        for s in sorted({latest} | before, reverse=True):
            if s <= was[1] or any(overlap(s, busy, t, clocks, self.interval) for t, clocks in taken):
                continue
            t = self._issue_slot(n, ready, s, held)
            if t is not None and not any(self._swapped(s, t, m) for m in self.tables.mates[n]):
                self.issue[n], self.start[n] = t, s
                return
        self.issue[n], self.start[n] = was

    def hasten(self, copies: Sequence[int]) -> None:
        """Start copies again as soon as they can, those first that can first."""
        was = {n: (self.issue[n], self.start[n]) for n in copies}
        for n in copies:
            self._drop(n)
        first = {n: self._earliest(n, was[n][0] - self.interval) for n in copies}
        for n in sorted(copies, key=lambda n: (first[n], was[n])):
            found, most = self._find(n, *self._earliest(n, first[n][0])), self._latest(n)
            if found is None or (most is not None and found[1] > most):
                self.issue |= {m: at for m, (at, _) in was.items()}
                self.start |= {m: at for m, (_, at) in was.items()}
                return
            self.issue[n], self.start[n] = found


def settled(tables: Tables, times: Timing) -> Timing:
    """The times from 0, with copies as late as their readers allow, and the slots that they need.

    In a short loop a tile that can have one slot only is filled anew as soon as that is free: to wait saves no memory. Over
    many iterations blocks that read the same lose touch then. With late copies who is in front waits for memory, and the next
    one for the cache only (H200, MLA decoding, 256 iterations: 2.4 GB read instead of 2.8, but 1 % slower in short loops).
    """
    low = min(times.issue.values())
    issue = {n: times.issue[name] - low for n, name in enumerate(tables.names)}
    start = {n: times.start[name] - low for n, name in enumerate(tables.names)}
    at = Attempt(tables, times.interval, issue, start)
    for n in tables.copies:
        at.delay(n)
    if 0 < tables.body.trips <= SHORT:
        at.hasten(tables.pressed)
    found = at.times(max(0, -min(at.issue.values())))
    depth = needed_depth(tables.body, tables.deps, found.interval, found.issue, found.start)
    return Timing(found.interval, found.issue, found.start, depth)
