"""A schedule's runs of few iterations, unfolded: which events of which warp come before which, in every run of so many.

An event is the begin or the end of one iteration of an op in one warp. Nothing in such a run is a choice: an op begins when its
stream has come to it and its waits are over. So an event comes before another one in each run, however long anything takes,
just if there is a way from the one to the other through program order, queues and waits; and nobody waits for ever just if
these go round in no circle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..inference.schedule.model import BARRIER, GROUP, INTERLOCK, MEET
from ..inference.schedule.program import Schedule, Step, Token, Wait

BEGIN, END = 0, 1
Event = tuple[str, int, int, int]  # op, iteration, warp, begin or end


def warps(schedule: Schedule, op: str) -> tuple[int, ...]:
    """The warps that stand for all of an op's stream; the first is the one that tells for its group."""
    return schedule.body.warps(op, schedule.uneven)


def tellers(schedule: Schedule, token: Token, op: str) -> tuple[int, ...]:
    """The warps whose arrival for ``op`` a wait for the token is sure of."""
    once = schedule.told_once(token, op)
    return schedule.body.tellers(op, schedule.uneven) if once else warps(schedule, op)


@dataclass
class Unfolded:
    """All events of a run of ``trips`` iterations. ``into``: what comes just before each of them.

    ``missing``: waits for what never comes. ``mates``: also who has come where, as what is started together shows; this orders
    no accesses of memory.
    """

    schedule: Schedule
    trips: int
    mates: bool = False
    into: dict[Event, list[Event]] = field(default_factory=dict[Event, "list[Event]"])
    missing: list[tuple[Event, Event]] = field(default_factory=list[tuple[Event, Event]])

    def __post_init__(self) -> None:
        for stream, steps in self.schedule.streams.items():
            if steps:
                for w in warps(self.schedule, steps[0].op):
                    self._walk(stream, steps, w)
        self.before = self._before()

    def comes_before(self, first: Event, then: Event) -> bool:
        return bool(self.before[then] >> self.number[first] & 1)

    def exists(self, op: str, iteration: int) -> bool:
        """Barriers are met at every kernel step, of which there are more than iterations."""
        o = self.schedule.ops[op]
        more = self.schedule.stages(o.stream) - 1 if o.kind == MEET else 0
        return 0 <= iteration < self.trips + more

    def _walk(self, stream: str, steps: tuple[Step, ...], w: int) -> None:
        """One warp through its kernel steps. A step without an iteration is left out, but counts in its queue's groups."""
        last: Event | None = None
        groups: dict[str, list[Event | None]] = {}
        newest: dict[str, Event] = {}
        for k in range(self.trips + self.schedule.stages(stream) - 1):
            for s in steps:
                o, i = self.schedule.ops[s.op], k - s.stage
                here = self.exists(s.op, i)
                if here:
                    begin, end = (s.op, i, w, BEGIN), (s.op, i, w, END)
                    self.into[begin] = [] if last is None else [last]
                    mates = self.schedule.body.mates(s.op, w, self.mates and self.schedule.uneven)
                    self.into[end] = [begin, *((s.op, i, x, BEGIN) for x in mates)]
                    for wait in s.waits:
                        self._waited(s, wait, i, w, groups)
                    if o.asynchronous and self.schedule.body.in_order(s.op):
                        self.into[end] += (newest[o.unit],) if o.unit in newest else ()
                        newest[o.unit] = end
                    last = begin if o.asynchronous else end
                if o.asynchronous:
                    groups.setdefault(o.unit, []).append((s.op, i, w, END) if here else None)

    def _waited(self, s: Step, wait: Wait, i: int, w: int, groups: dict[str, list[Event | None]]) -> None:
        token, begin = self.schedule.tokens[wait.token], (s.op, i, w, BEGIN)
        match token.kind:
            case kind if kind == BARRIER:
                others = (x for x in warps(self.schedule, s.op) if x != w)
                self.into[s.op, i, w, END] += ((s.op, i, x, BEGIN) for x in others)
            case kind if kind == GROUP:
                unit = self.schedule.ops[token.producers[0]].unit
                begun = groups.get(unit, [])
                ended = begun[: max(0, len(begun) - wait.distance)]
                self.into[begin] += (e for e in ended if e is not None)
            case _:
                self.into[begin] += self._told(token, wait, i, w, s.op)

    def _told(self, token: Token, wait: Wait, i: int, w: int, op: str) -> Iterator[Event]:
        """Arrivals at the instance that is waited for; an ``interlock`` sees those of its own warp alone."""
        j = i - wait.distance
        for u in token.producers if j >= 0 else ():
            if not self.exists(u, j):
                self.missing.append(((op, i, w, BEGIN), (u, j, 0, END)))
                continue
            own = token.kind == INTERLOCK
            yield from ((u, j, x, END) for x in ((w,) if own else tellers(self.schedule, token, u)))

    def _before(self) -> dict[Event, int]:
        """Of each event those before it as bits; events of a circle, and behind one, have none."""
        self.number = {e: n for n, e in enumerate(self.into)}
        left = {e: len(into) for e, into in self.into.items()}
        after: dict[Event, list[Event]] = {e: [] for e in self.into}
        for e, into in self.into.items():
            for x in into:
                after[x].append(e)
        ready = [e for e, n in left.items() if not n]
        out: dict[Event, int] = {}
        for e in ready:  # grows while it is walked
            bits = 0
            for x in self.into[e]:
                bits |= out[x] | 1 << self.number[x]
            out[e] = bits
            for y in after[e]:
                left[y] -= 1
                if not left[y]:
                    ready.append(y)
        return out
