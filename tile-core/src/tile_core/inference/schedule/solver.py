"""Times of the ops of a loop body as a question to z3: for one interval, and only with differences of clocks.

Of two ops of one stream (or unit, or queue) the newest instance of one that comes before an instance of the other is some
iterations older: its *lap*. Dependences bound how many, so each lap is a choice of a few numbers, and with it chosen all that is
demanded are differences of two clocks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from math import ceil, inf
from typing import Any

import z3 as z3_  # pyright: ignore[reportMissingTypeStubs]

from .bounds import depth_caps
from .links import Links, point
from .model import PIN, REGISTER, Body, Dep, Op, Storage
from .timing import Timing
from .undisturbed import disturbed

z3: Any = z3_  # it has no types
SPAN = 2  # iterations that ops are moved at most where no dependence bounds it


@dataclass(frozen=True)
class Found:
    """``sat`` with times and slots, ``unsat``, ``none near`` (of laps that nothing bounds some were not tried), or ``unknown``."""

    verdict: str
    times: Timing | None = None


class Question:
    """Are there times with this interval? Its solver is its own, so the answer depends on nothing else.

    ``near``: times with another interval; laps that nothing bounds are near those of them. ``allowed``: (G, H, op) of writes to
    registers that may stand between products that run together.
    """

    def __init__(
        self,
        body: Body,
        deps: Sequence[Dep],
        interval: int,
        near: Timing,
        allowed: Collection[tuple[str, str, str]] = (),
    ) -> None:
        self.body, self.deps, self.interval, self.near = body, deps, interval, near
        self.allowed = allowed
        self.links = Links(body, deps, depth_caps(body))
        self.complete = True
        self.context = z3.Context()
        self.solver = z3.Solver(ctx=self.context)
        self.solver.set("random_seed", 0)
        self.issue = {o.name: z3.Int(f"t {o.name}", self.context) for o in body.ops}
        self.start = {
            o.name: z3.Int(f"s {o.name}", self.context) if o.asynchronous else self.issue[o.name]
            for o in body.ops
        }
        self.laps: dict[tuple[str, str], dict[int, Any]] = {}
        self.solver.add(*self._slots(), *self._begun())
        for d in deps:
            self.solver.add(*self._kept(d))
        for u, v in combinations(body.ops, 2):
            self.solver.add(*self._apart(u, v))

    def answer(self, rlimit: int) -> Found:
        """The answer with so many of z3's resources for each try: writes that may not stand where they are are excluded then."""
        self.solver.set("rlimit", rlimit)
        excluded = set(self.allowed)
        while (verdict := str(self.solver.check())) == "sat":
            times = self._times(self.solver.model())
            wrong = sorted(disturbed(self.body, self.deps, times) - excluded)
            if not wrong:
                return Found(verdict, times)
            for g, h, x in wrong:
                self.solver.add(*self._undisturbed(g, h, x))
            excluded.update(wrong)
        return Found("none near" if verdict == "unsat" and not self.complete else verdict)

    @cached_property
    def depth(self) -> dict[str, dict[int, Any]]:
        """Ring -> number of slots -> that it has so many at most. The most that one may have always holds."""
        return {
            s.name: {n: z3.Bool(f"{s.name} has {n}", self.context) for n in range(s.least, self._most(s))}
            | {self._most(s): z3.BoolVal(True, self.context)}
            for s in self.body.storage
        }

    def _most(self, s: Storage) -> int:
        return self.links.depth[s.name]

    def _slots(self) -> Iterator[Any]:
        """Who has at most n slots has at most n + 1; all tiles fit into memory and registers."""
        for slots in self.depth.values():
            counts = sorted(slots)
            yield from (z3.Implies(slots[a], slots[b]) for a, b in pairwise(counts))
        for space, room in self.body.capacity.items():
            yield from self._fits([(s, s.bytes) for s in self.body.storage if s.space == space], room)
        for stream in self.body.streams:
            if stream.registers:
                mine = [s for s in self.body.storage if s.space == REGISTER and s.stream == stream.name]
                sizes = [(s, ceil(s.bytes / (4 * stream.threads))) for s in mine]
                yield from self._fits(sizes, stream.registers)

    def _fits(self, tiles: Sequence[tuple[Storage, int]], room: int) -> Iterator[Any]:
        """Each slot beyond the least takes as much again."""
        least = sum(size * s.least for s, size in tiles)
        more = [
            (z3.Not(at_most), size)
            for s, size in tiles
            for n, at_most in self.depth[s.name].items()
            if n < self._most(s) and size
        ]
        if more and least + sum(size for _, size in more) > room:
            yield z3.PbLe(more, room - least)

    def _begun(self) -> Iterator[Any]:
        """No op is started before it is issued."""
        for o in self.body.ops:
            if o.asynchronous:
                yield self.start[o.name] - self.issue[o.name] >= 0

    def _kept(self, d: Dep) -> Iterator[Any]:
        clocks, to_start = self.body.weight(d)
        gap = (self.start if to_start else self.issue)[d.v]
        gap = gap - (self.issue if d.kind == PIN else self.start)[d.u]
        if not d.ring:
            yield gap >= clocks - self.interval * d.distance
            return
        for slots, at_most in self.depth[d.storage].items():
            yield z3.Implies(at_most, gap >= clocks - self.interval * (d.distance + slots))

    def _apart(self, u: Op, v: Op) -> Iterator[Any]:
        """What keeps two ops apart: one unit, one stream, one queue."""
        queue = self.body.fifo(u.name, v.name)
        if queue or (u.stream == v.stream and u.hold and v.hold):
            laps = self._issued(u.name, v.name)
            if queue:  # started in the order in which they are issued
                for lap, chosen in laps.items():
                    yield z3.Implies(chosen, self._between(self.start, u.name, v.name, lap, u.busy, v.busy))
        if not queue and u.unit and u.unit == v.unit and u.busy and v.busy:
            laps = self._range(u, v, True)
            yield z3.Or([self._between(self.start, u.name, v.name, lap, u.busy, v.busy) for lap in laps])

    def _issued(self, u: str, v: str) -> dict[int, Any]:
        """Lap -> that ``u`` of so many iterations before is the newest that is issued before ``v``. One is chosen."""
        if (v, u) in self.laps:  # v of lap k before u is u of lap -k - 1 before v
            return {-lap - 1: chosen for lap, chosen in self.laps[v, u].items()}
        if (u, v) not in self.laps:
            a, b = self.body.op[u], self.body.op[v]
            laps = {lap: z3.Bool(f"{u} {lap} before {v}", self.context) for lap in self._range(a, b, False)}
            for lap, chosen in laps.items():
                self.solver.add(z3.Implies(chosen, self._between(self.issue, u, v, lap, a.hold, b.hold)))
            self.solver.add(z3.Or(list(laps.values())))
            self.laps[u, v] = laps
        return self.laps[u, v]

    def _between(self, at: dict[str, Any], u: str, v: str, lap: int, first: int, then: int) -> Any:
        """``v`` begins when ``u`` of ``lap`` is over, and is over when the next ``u`` begins."""
        gap = at[v] - at[u]
        return z3.And(gap >= lap * self.interval + first, gap <= (lap + 1) * self.interval - then)

    def _range(self, u: Op, v: Op, start: bool) -> range:
        """The laps that dependences leave."""
        a, b = self.links.number[point(u, start)], self.links.number[point(v, start)]
        low, high = self._least[a][b], -self._least[b][a]
        at = self.near.start if start else self.near.issue
        usual = (at[v.name] - at[u.name]) // self.near.interval
        if low == -inf or high == inf:
            self.complete = False
        first = usual - SPAN if low == -inf else int(low // self.interval)
        last = usual + SPAN if high == inf else int(high // self.interval)
        return range(first, last + 1)

    @cached_property
    def _least(self) -> list[list[float]]:
        """Clocks that at least lie between any two points, by all chains of dependences (Floyd, "Algorithm 97", 1962)."""
        count = len(self.links.points)
        least = [[-inf] * count for _ in range(count)]
        for n in range(count):
            least[n][n] = 0
        for u, v, clocks, distance in self.links.fixed:
            least[u][v] = max(least[u][v], clocks - self.interval * distance)
        for middle in range(count):
            after = least[middle]
            for row in least:
                if (through := row[middle]) > -inf:
                    row[:] = [max(a, through + b) for a, b in zip(row, after, strict=True)]
        return least

    def _undisturbed(self, g: str, h: str, x: str) -> Iterator[Any]:
        """``x`` is not between the products G and H, or their stream waits for G between them anyway."""
        waiting = [d for d in self.deps if d.u == g and d.kind != PIN and self._may_wait(d.v, h)]
        for lap, chosen in self._issued(g, h).items():
            waited = [
                z3.And(seen, self.issue[d.v] - self.issue[g] > self.interval * (lap - k))
                for d in waiting
                for k, seen in self._issued(d.v, h).items()
                if k - d.distance >= lap
            ]
            for k, written in self._issued(x, h).items():
                before = self.issue[x] - self.issue[g] <= self.interval * (lap - k)
                yield z3.Implies(z3.And(chosen, written), z3.Or([before, *waited]))

    def _may_wait(self, op: str, h: str) -> bool:
        """Whether an op may stop the stream of a product."""
        o = self.body.op[op]
        return o.stream == self.body.op[h].stream and not o.asynchronous

    def _times(self, model: Any) -> Timing:
        def true(x: Any) -> bool:
            return z3.is_true(model.eval(x, model_completion=True))

        issue, start = (
            {n: model.eval(x, model_completion=True).as_long() for n, x in at.items()}
            for at in (self.issue, self.start)
        )
        depth = {
            n: min(k for k, at_most in slots.items() if true(at_most)) for n, slots in self.depth.items()
        }
        return Timing(self.interval, issue, start, depth)
