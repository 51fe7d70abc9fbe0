"""What must come after what at an order of ops, as a graph of numbers: from a body and times to edges with clocks and distances.

What dependences demand is the same for all orders; the rest follows from who is before whom on each stream and unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from .bounds import Edge
from .model import PIN, Body, Dep, Op
from .timing import Timing

Point = tuple[str, bool]  # an op, and whether its start is meant rather than its issue
Stop = tuple[str, int, int]  # an op, its point's number, and the clocks until the next one


def point(o: Op, start: bool) -> Point:
    """A synchronous op is started when it is issued."""
    return o.name, start and o.asynchronous


@dataclass(frozen=True)
class Links:
    """The graph of a body whose rings have ``depth`` slots."""

    body: Body
    deps: Sequence[Dep]
    depth: Mapping[str, int]

    @cached_property
    def points(self) -> list[Point]:
        """What has a time of its own."""
        return list(dict.fromkeys(point(o, s) for o in self.body.ops for s in (False, True)))

    @cached_property
    def number(self) -> dict[Point, int]:
        return {p: n for n, p in enumerate(self.points)}

    def of(self, times: Timing) -> list[Edge]:
        """What dependences and the order on streams and units demand."""
        edges = list(self.fixed)
        for stops in self._streams:
            edges += _round(stops, times.issue, times.interval)
        for stops in self._units:
            edges += _round(stops, times.start, times.interval)
        return edges

    @cached_property
    def fixed(self) -> tuple[Edge, ...]:
        """What holds in every order."""
        return (*self._demanded(), *self._begun())

    def _demanded(self) -> Iterator[Edge]:
        op = self.body.op
        for d in self.deps:
            weight, to_start = self.body.weight(d)
            u, v = self.number[point(op[d.u], d.kind != PIN)], self.number[point(op[d.v], to_start)]
            yield u, v, weight, d.at(self.depth)

    def _begun(self) -> Iterator[Edge]:
        """No op is started before it is issued."""
        for o in self.body.ops:
            if o.asynchronous:
                yield self.number[o.name, False], self.number[o.name, True], 0, 0

    @cached_property
    def _streams(self) -> list[list[Stop]]:
        return [
            [
                (o.name, self.number[o.name, False], o.hold)
                for o in self.body.ops
                if o.stream == s.name and o.hold
            ]
            for s in self.body.streams
        ]

    @cached_property
    def _units(self) -> list[list[Stop]]:
        return [
            [
                (o.name, self.number[point(o, True)], o.busy)
                for o in self.body.ops
                if o.unit == unit and o.busy
            ]
            for unit in dict.fromkeys(o.unit for o in self.body.ops if o.unit)
        ]


def _round(stops: Sequence[Stop], at: Mapping[str, int], interval: int) -> Iterator[Edge]:
    """Each op after the one before it on a stream or unit, and the first after the last of the iteration before."""
    order = sorted((at[name] % interval, n) for n, (name, _, _) in enumerate(stops))
    for k, (_, y) in enumerate(order):
        x = order[k - 1][1]
        if x != y:
            (a, u, clocks), (b, v, _) = stops[x], stops[y]
            yield u, v, clocks, at[a] // interval - at[b] // interval + (0 if k else 1)
