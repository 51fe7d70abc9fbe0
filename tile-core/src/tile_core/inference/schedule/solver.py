"""Times of the ops of a loop body as a question to z3: for one interval, all that is demanded is linear.

A clock is stage * interval + offset, with the interval a number. Dependences are inequalities of clocks; what shares a unit or a
stream has offsets that do not overlap; a queue starts its ops in the order in which they are issued.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil
from typing import Any

import z3 as z3_  # pyright: ignore[reportMissingTypeStubs]

from .model import PIN, REGISTER, Body, Dep, Op
from .timing import Timing
from .undisturbed import together, writers

z3: Any = z3_  # it has no types


@dataclass(frozen=True)
class Clock:
    """The clock of an issue or a start."""

    value: Any
    offset: Any


class Question:
    """Are there times with this interval? Its solver is its own, so the answer depends on nothing else.

    ``allowed``: (G, H, op) of writes to registers that may stand between products that run together.
    """

    def __init__(
        self,
        body: Body,
        deps: Sequence[Dep],
        interval: int,
        rlimit: int,
        allowed: Collection[tuple[str, str, str]] = (),
    ) -> None:
        self.body, self.deps, self.interval = body, deps, interval
        self.laps: dict[tuple[str, str], tuple[Any, Any]] = {}
        self.context = z3.Context()
        self.solver = z3.SolverFor("QF_LIA", ctx=self.context)
        self.solver.set("rlimit", rlimit)
        self.solver.set("random_seed", 0)
        self.issue = {o.name: self._clock(f"t {o.name}") for o in body.ops}
        self.start = {
            o.name: self._clock(f"s {o.name}") if o.asynchronous else self.issue[o.name] for o in body.ops
        }
        self.depth = {s.name: 1 if s.carried else self._int(f"d {s.name}") for s in body.storage}
        first = max(body.ops, key=lambda o: max(o.busy, o.hold))
        self.solver.add(self.start[first.name].value == 0)  # times may be moved as a whole
        self.solver.add(*self._rings(), *self._room(), *self._begun())
        self.solver.add(*(self._kept(d) for d in deps))
        for u, v in combinations(body.ops, 2):
            self.solver.add(*self._apart(u, v))
        for g, h in together(body):
            for x in writers(body, h):
                if (g, h, x) not in allowed:
                    self.solver.add(self._undisturbed(g, h, x))

    def answer(self) -> tuple[str, Timing | None]:
        """``sat`` with times and slots, ``unsat``, or ``unknown`` where the resources were not enough."""
        verdict = str(self.solver.check())
        return verdict, self._times(self.solver.model()) if verdict == "sat" else None

    def _int(self, name: str) -> Any:
        return z3.Int(name, self.context)

    def _clock(self, name: str) -> Clock:
        stage, offset = self._int(f"{name} stage"), self._int(f"{name} offset")
        self.solver.add(offset >= 0, offset < self.interval)
        return Clock(stage * self.interval + offset, offset)

    def _rings(self) -> Iterator[Any]:
        for s in self.body.storage:
            if not s.carried:
                yield self.depth[s.name] >= s.least
                yield self.depth[s.name] <= s.most

    def _room(self) -> Iterator[Any]:
        """Tiles fit into memory and registers."""
        for space, room in self.body.capacity.items():
            used = [self.depth[s.name] * s.bytes for s in self.body.storage if s.space == space]
            yield self._sum(used) <= room
        for stream in self.body.streams:
            if stream.registers:
                used = [
                    self.depth[s.name] * ceil(s.bytes / (4 * stream.threads))
                    for s in self.body.storage
                    if s.space == REGISTER and s.stream == stream.name
                ]
                yield self._sum(used) <= stream.registers

    def _sum(self, parts: Sequence[Any]) -> Any:
        return z3.Sum([z3.IntVal(0, self.context), *parts])

    def _begun(self) -> Iterator[Any]:
        """No op is started before it is issued."""
        for o in self.body.ops:
            if o.asynchronous:
                yield self.start[o.name].value >= self.issue[o.name].value

    def _kept(self, d: Dep) -> Any:
        clocks, to_start = self.body.weight(d)
        end = (self.start if to_start else self.issue)[d.v].value
        slots = self.depth[d.storage] if d.ring else 0
        since = (self.issue if d.kind == PIN else self.start)[d.u].value
        return end + self.interval * (d.distance + slots) >= since + clocks

    def _apart(self, u: Op, v: Op) -> Iterator[Any]:
        """What keeps two ops apart: one unit, one stream, one queue."""
        if u.unit and u.unit == v.unit and u.busy and v.busy:
            yield self._disjoint(self.start[u.name].offset, u.busy, self.start[v.name].offset, v.busy)
        if u.stream == v.stream and u.hold and v.hold:
            yield self._disjoint(self.issue[u.name].offset, u.hold, self.issue[v.name].offset, v.hold)
        if self.body.fifo(u.name, v.name):
            lap, _ = self._since(u.name, v.name)
            gap = self.start[v.name].value - self.start[u.name].value - self.interval * lap
            yield gap >= 0
            yield gap < self.interval

    def _since(self, u: str, v: str) -> tuple[Any, Any]:
        """(which instance of ``u`` is the newest that is issued before iteration 0 of ``v``, clocks since then)."""
        if (u, v) not in self.laps:
            lap = self._int(f"lap {u} {v}")
            gap = self.issue[v].value - self.issue[u].value - self.interval * lap
            self.solver.add(gap >= 0, gap < self.interval)
            self.laps[u, v] = lap, gap
        return self.laps[u, v]

    def _undisturbed(self, g: str, h: str, x: str) -> Any:
        """``x`` is not between the products G and H, or their stream waits for G between them anyway."""
        lap, begun = self._since(g, h)
        apart = [self._since(x, h)[1] >= begun]
        for d in self.deps:
            if d.u == g and d.kind != PIN and self._waits_in(d.v, h):
                seen, since = self._since(d.v, h)
                apart.append(z3.And(since < begun, seen - d.distance >= lap))
        return z3.Or(apart)

    def _waits_in(self, op: str, h: str) -> bool:
        """Whether an op may stop the stream of a product."""
        o = self.body.op[op]
        return o.stream == self.body.op[h].stream and not o.asynchronous

    def _disjoint(self, a: Any, la: int, b: Any, lb: int) -> Any:
        return z3.Or(
            z3.And(b - a >= la, a + self.interval - b >= lb),
            z3.And(a - b >= lb, b + self.interval - a >= la),
        )

    def _times(self, model: Any) -> Timing:
        def value(x: Any) -> int:
            return x if isinstance(x, int) else model.eval(x, model_completion=True).as_long()

        issue = {n: value(c.value) for n, c in self.issue.items()}
        start = {n: value(c.value) for n, c in self.start.items()}
        depth: Mapping[str, int] = {n: value(d) for n, d in self.depth.items()}
        return Timing(self.interval, issue, start, depth)
