"""Runs a schedule on streams, in-order queues and tokens, with any timing, and looks at what memory really holds.

The checks know nothing of dependences: every slot remembers which iteration was written into it and by whom; a read must see
the complete version that it wants from its start to its end. (Tiles that are updated in place are looked at by dependence.)
Tokens behave as the hardware's do: a signal has only a phase bit, a group wait counts, and a barrier waits for the other warp.
Of a cooperative stream two warps run, each with half of the work.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterator

from tile_core.inference.schedule.model import MEET, REGISTER, Op
from tile_core.inference.schedule.program import Schedule, Step, Token, Wait

Part = tuple[str, int]  # an op or a stream, and one of its warps
Costs = Callable[[Op, Part, random.Random], tuple[int, int, int, int]]  # busy, span, issue, signal


class Violation(Exception):
    pass


class Machine:
    def __init__(self, schedule: Schedule, trips: int, costs: Costs | None = None, seed: int = 0) -> None:
        self.p, self.n, self.rng, self.body = schedule, trips, random.Random(seed), schedule.body
        self.adversarial = costs is not None
        self.costs = costs or self._nominal
        self.now = self.tick = 0
        self.events: list[tuple[int, int, Callable[[], object]]] = []
        self.last = {s: trips - 1 + schedule.stages(s) for s in schedule.streams}
        self.at = {(s, w): (0, 0) for s in schedule.streams for w in self._warps(s)}
        self.held = dict.fromkeys(self.at, False)
        self.queues: dict = {}
        self.history: dict = {}
        self.unit_busy: dict = {}
        self.queue_end: dict = {}
        self.parts = {o.name: [(o.name, w) for w in self._warps(o.stream)] for o in self.body.ops}
        self.done = {part: set() for parts in self.parts.values() for part in parts}
        self.started = dict.fromkeys(self.done, 0)
        self.met: dict = {}
        self.phase: dict = {}
        self.arrived: dict = {}
        self.memory: dict = {}
        self.finish: dict[int, int] = {}
        self.carried: dict = {}
        for d in schedule.deps:
            if d.storage in self.body.tile and self.body.tile[d.storage].carried:
                self.carried.setdefault(d.v, []).append(d)

    def _nominal(self, o: Op, agent: Part, rng: random.Random) -> tuple[int, int, int, int]:
        parts = len(self._warps(agent[0]))
        return o.busy // parts, o.span - o.busy + o.busy // parts, o.issue, self.body.signal

    def _warps(self, stream: str) -> tuple[int, ...]:
        return (0, 1) if self.body.stream[stream].cooperative else (0,)

    # running

    def run(self) -> int:
        while True:
            moved = True
            while moved:
                moved = False
                for agent in self.rng.sample(list(self.at), len(self.at)):
                    while not self.held[agent] and self._advance(agent):
                        moved = True
                moved |= self._dispatch()
            if not self.events:
                break
            self.now, _, action = heapq.heappop(self.events)
            action()
        stuck = [
            f"{a} at {self.p.streams[a[0]][i].op} step {k}"
            for a, (k, i) in self.at.items()
            if k < self.last[a[0]] and self.p.streams[a[0]]
        ]
        if stuck:
            raise Violation("deadlock: " + ", ".join(stuck))
        return self.now

    def _later(self, delay: int, action: Callable[[], object]) -> None:
        self.tick += 1
        heapq.heappush(self.events, (self.now + delay, self.tick, action))

    def _advance(self, agent: Part) -> bool:
        (k, i), steps = self.at[agent], self.p.streams[agent[0]]
        if k >= self.last[agent[0]] or not steps:
            return False
        step = steps[i]
        o, it = self.body.op[step.op], k - step.stage
        following = (k, i + 1) if i + 1 < len(steps) else (k + 1, 0)
        if not (o.kind == MEET or 0 <= it < self.n):
            if o.asynchronous:
                self.history.setdefault((*agent, o.unit), []).append(None)  # an empty group
            self.at[agent] = following
            return True
        if not self._passes_all(step, it, o, agent):
            return False
        if o.unit and not o.asynchronous and self.unit_busy.get(self._where(agent, o.unit)):
            return False
        self.at[agent] = following
        self._issue(agent, o, it)
        return True

    def _issue(self, agent: Part, o: Op, it: int) -> None:
        part = (o.name, agent[1])
        busy, span, issue, signal = self.costs(o, agent, self.rng)
        self.held[agent] = True
        if o.asynchronous:
            self.queues.setdefault((*agent, o.unit), []).append((o, part, it, busy, span, signal, self.now))
            self.history.setdefault((*agent, o.unit), []).append((part, it))
            self._later(issue, lambda: self.held.__setitem__(agent, False))
            return
        if o.unit:
            where = self._where(agent, o.unit)
            self.unit_busy[where] = True
            self._later(busy, lambda: self.unit_busy.__setitem__(where, False))
        self._begin(o, part, it)

        def end() -> None:
            self._end(o, part, it, signal)
            self.held[agent] = False

        self._later(span, end)

    def _dispatch(self) -> bool:
        heads = [
            q
            for q, items in self.queues.items()
            if items and not self.unit_busy.get(self._where(q[:2], q[2]))
        ]
        if not heads:
            return False
        q = min(heads, key=lambda x: (self.queues[x][0][6], self.rng.random()))
        o, part, it, busy, span, signal, _ = self.queues[q].pop(0)
        where = self._where(q[:2], q[2])
        self.unit_busy[where] = True
        self._begin(o, part, it)
        end = self.now + span
        if self.body.unit[o.unit].in_order:
            end = self.queue_end[q] = max(end, self.queue_end.get(q, 0))
        self._later(busy, lambda: self.unit_busy.__setitem__(where, False))
        self._later(end - self.now, lambda: self._end(o, part, it, signal))
        return True

    def _where(self, agent: Part, unit: str) -> object:
        """Under adversarial timing agents do not exclude each other on a unit: safety must not rest on that."""
        return (agent, unit) if self.adversarial else unit

    # tokens

    def _passes_all(self, step: Step, it: int, o: Op, agent: Part) -> bool:
        counts = [w for w in step.waits if self.p.tokens[w.token].kind != "barrier"]
        if not all(self._passes(w, it, agent) for w in counts):
            return False
        if len(counts) == len(step.waits):
            return True
        self.met.setdefault((o.name, it), set()).add(
            agent[1]
        )  # it has arrived, and now waits for the other warp
        return len(self.met[o.name, it]) == len(self.parts[o.name])

    def _passes(self, w: Wait, i: int, agent: Part) -> bool:
        t = self.p.tokens[w.token]
        if t.kind == "group":
            first = self.body.op[t.producers[0]]
            history = self.history.get((*agent, first.unit), [])
            old = history[: len(history) - w.distance] if w.distance else history
            return all(e is None or e[1] in self.done[e[0]] for e in old)
        j = i - w.distance
        if j < 0:
            return True
        if t.kind == "interlock":
            return all(j in self.done[u, agent[1]] or j >= self.n for u in t.producers)
        return self.phase.get((t.name, j % t.slots), 0) % 2 != (j // t.slots) % 2

    def _arrive(self, part: Part, i: int, signal: int) -> None:
        for t in self.p.tokens.values():
            if t.kind == "signal" and part[0] in t.producers:
                self._later(signal, lambda t=t: self._arrival(t, part, i))

    def _arrival(self, t: Token, who: Part, i: int) -> None:
        key = (t.name, i % t.slots)
        there = self.arrived.setdefault(key, set())
        if who in there:
            raise Violation(f"{who} arrives twice in one phase of {key}")
        there.add(who)
        if len(there) == sum(len(self.parts[u]) for u in t.producers):
            self.phase[key] = self.phase.get(key, 0) + 1
            there.clear()

    # memory

    def _slot(self, storage: str, warp: int, i: int) -> list | None:
        """[iteration, parts that have written it, first writer] of the slot that iteration i uses, of this warp if private."""
        private = warp if self.body.tile[storage].space == REGISTER else -1
        return self.memory.get((storage, private, i % self.p.depth[storage]))

    def _writers(self, storage: str, warp: int) -> set[Part]:
        own = self.body.tile[storage].space == REGISTER
        return {
            p
            for o in self.body.ops
            if storage in o.writes
            for p in self.parts[o.name]
            if not own or p[1] == warp or len(self.parts[o.name]) == 1
        }

    def _begin(self, o: Op, part: Part, i: int) -> None:
        for d in self.carried.get(o.name, ()):
            j = i - d.at(self.p.depth)
            for u in self.parts[d.u] if self.body.shared(d.storage) else [(d.u, part[1])]:
                u = u if u in self.done else self.parts[d.u][0]
                ok = self.started[u] > j if d.queued else j in self.done[u]
                if j >= 0 and not ok:
                    raise Violation(f"{part}({i}) touches {d.storage} before {u}({j}) is done")
        self._look(o, part, i, False)
        self.started[part] = i + 1
        for b in o.writes:
            private = part[1] if self.body.tile[b].space == REGISTER else -1
            slot = self.memory.setdefault((b, private, i % self.p.depth[b]), [None, set(), None])
            if slot[0] != i:
                slot[:] = i, set(), part

    def _look(self, o: Op, part: Part, i: int, ending: bool) -> None:
        for r in o.reads:
            if self.body.tile[r.name].carried or i - r.back < 0:
                continue
            slot = self._slot(r.name, part[1], i - r.back)
            behind = ending and slot and slot[0] != i - r.back and slot[2][1] == part[1]
            if behind and self.body.same_queue(o.name, slot[2][0]):
                continue  # overwritten behind it in its own in-order queue
            if not slot or slot[0] != i - r.back or slot[1] != self._writers(r.name, part[1]):
                raise Violation(f"{part}({i}) reads {r.name} of iteration {i - r.back}, slot holds {slot}")

    def _end(self, o: Op, part: Part, i: int, signal: int) -> None:
        self._look(o, part, i, True)
        for b in o.writes:
            slot = self._slot(b, part[1], i)
            if slot[0] != i and not (slot[2][1] == part[1] and self.body.same_queue(o.name, slot[2][0])):
                raise Violation(f"{b} slot overwritten while {part}({i}) writes it")
            if slot[0] == i:
                slot[1].add(part)
        self.done[part].add(i)
        self.finish[i] = max(self.finish.get(i, 0), self.now)
        self._arrive(part, i, signal)


def steady_rate(schedule: Schedule, trips: int = 40) -> float:
    """Clocks an iteration at nominal costs. Bandwidths are not simulated, so it may be below the interval."""
    m = Machine(schedule, trips)
    m.run()
    return (m.finish[trips - 8] - m.finish[12]) / (trips - 20)


def adversaries(schedule: Schedule) -> Iterator[tuple[str, Costs | None]]:
    """Timings under which a missing order shows: each op in turn very slow, each stream slow, one warp slow, heavy tails."""

    def slow(match: Callable[[Op, Part], bool], factor: int) -> Costs:
        def costs(o: Op, agent: Part, rng: random.Random) -> tuple[int, int, int, int]:
            hit = match(o, agent)
            f = factor if hit else 0.02
            issue = max(1, int(o.issue * (300 if hit else 0.05)))
            return max(1, int(o.busy * f)), max(1, int(o.span * f)), issue, 1

        return costs

    def tail(o: Op, agent: Part, rng: random.Random) -> tuple[int, int, int, int]:
        f = rng.choice((0.01, 0.3, 1, 1, 8))
        issue = max(1, int(o.issue * rng.choice((0.1, 1, 200))))
        return max(1, int(o.busy * f)), max(1, int(o.span * f)), issue, rng.choice((0, 1, 300))

    yield "nominal", None
    for o in schedule.body.ops:
        yield f"slow {o.name}", slow(lambda x, a, n=o.name: x.name == n, 20)
    for s in schedule.streams:
        yield f"slow stream {s}", slow(lambda x, a, s=s: x.stream == s, 5)
        if schedule.body.stream[s].cooperative:
            yield f"slow warp of {s}", slow(lambda x, a, s=s: a == (s, 1), 5)
    for r in range(12):
        yield f"tail {r}", tail


TRIPS = (1, 2, 3, 5, 17)


def attack(schedule: Schedule, trips: tuple[int, ...] = TRIPS, seeds: int = 1) -> str | None:
    """None, or the first violation found."""
    for r, (name, costs) in enumerate(adversaries(schedule)):
        for n in trips:
            for seed in range(seeds):
                try:
                    Machine(schedule, n, costs, 1000 * r + seed).run()
                except Violation as v:
                    return f"{name}, {n} trips, seed {1000 * r + seed}: {v}"
    return None
