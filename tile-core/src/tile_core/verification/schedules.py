"""A proof by z3 that a schedule is safe and live, for every number of iterations: takes a schedule, gives what could not be proved.

The state is a position of each stream (of several warps where it is cooperative, which stand for all) and a count of
completions of each asynchronous op. An invariant, written down from the waits alone, holds at the start, is kept by every
transition, implies every dependence, and no state that satisfies it is stuck before the end. That a wait for a phase bit is the
same as one for a count is a lemma of its own. Independent of the graph check, which argues with distances, and of the proof
from short runs: it takes longer than both, and is asked for where its questions are to be written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import z3 as z3_  # pyright: ignore[reportMissingTypeStubs]

from ..inference.schedule.model import BARRIER, GROUP, INTERLOCK, MEET, SIGNAL
from ..inference.schedule.order import Order
from ..inference.schedule.program import Schedule, Step, Token, Wait
from ..inference.schedule.slots import order_of
from .certificates import Certificates
from .contracted import contracted
from .unfolded import tellers

z3: Any = z3_  # it has no types
RLIMIT = 20_000_000  # z3's resources for one query: the same on every machine
MOST_SLOTS = 64
SIMPLEX = 2  # the arithmetic solver of z3 that is fastest on differences: half the time of its default
TOGETHER = 16  # cases of one query

Agent = tuple[str, int]  # a stream or an op, and one of its warps
# name, when it may happen, variables that it changes and their values after it, which warp
Move = tuple[str, Any, list[tuple[Any, Any]], int]


@dataclass(frozen=True)
class Proof:
    """``failures``: what was not proved, in words; ``unknown`` is one too. ``cases``: how many were shown to contradict."""

    failures: tuple[str, ...]
    cases: int


def prove_schedule(
    schedule: Schedule, rlimit: int = RLIMIT, most: int = 4, kept: Certificates | None = None
) -> Proof:
    """Prove a schedule, or name what fails; ends after ``most`` failures. ``kept``: where the questions are written.

    Where one warp tells for others it is proved twice: that memory is safe without, and that nobody is lapped or stuck with what
    is known of a warp's mates.
    """
    short = contracted(schedule)
    proof = _Prover(short, rlimit, most, kept, memory=True, progress=not schedule.uneven).run()
    if not schedule.uneven or len(proof.failures) >= most:
        return proof
    more = _Prover(short, rlimit, most - len(proof.failures), kept, memory=False, progress=True).run()
    return Proof(proof.failures + more.failures, proof.cases + more.cases)


@lru_cache(maxsize=MOST_SLOTS)
def phase_lemma(slots: int) -> bool:
    """Whether, with ``j - slots < C <= j + slots`` arrivals, the phase bit of slot ``j % slots`` tells ``C > j``.

    A wait for instance j looks at the parity of the completed phases of its slot.
    """
    context = z3.Context()
    c, j = z3.Ints("C j", context)
    phases = (c - j % slots + slots - 1) / slots
    solver = z3.Solver(ctx=context)
    solver.add(j >= 0, c >= 0, j - slots < c, c <= j + slots, ((phases - j / slots) % 2 == 1) != (c > j))
    return solver.check() == z3.unsat


def _names(x: Any) -> frozenset[str]:
    """The variables of an expression."""
    out: set[str] = set()
    seen: set[int] = set()
    work = [x]
    while work:
        e = work.pop()
        if e.get_id() not in seen:
            seen.add(e.get_id())
            work += e.children()
            if z3.is_const(e) and e.decl().kind() == z3.Z3_OP_UNINTERPRETED:
                out.add(str(e))
    return frozenset(out)


@dataclass
class _State:
    """Positions and counts as z3's variables. An odd position within a step is a synchronous op that runs."""

    schedule: Schedule
    trips: Any
    last: Any
    step: dict[Agent, Any] = field(default_factory=dict[Agent, Any])
    place: dict[Agent, Any] = field(default_factory=dict[Agent, Any])
    count: dict[Agent, Any] = field(default_factory=dict[Agent, Any])

    def __post_init__(self) -> None:
        context = self.trips.ctx
        for s in self.schedule.streams:
            for w in warps(self.schedule, s) if self.schedule.streams[s] else (0,):
                self.step[s, w] = z3.Int(f"step {s} {w}", context)
                self.place[s, w] = z3.Int(f"place {s} {w}", context)
        for o in self.schedule.body.ops:
            if o.asynchronous:
                for w in warps(self.schedule, o.stream):
                    self.count[o.name, w] = z3.Int(f"done {o.name} {w}", context)

    def limit(self, op: str) -> Any:
        """How many instances there are."""
        return self.last if self.schedule.ops[op].kind == MEET else self.trips

    def _passed(self, op: str, w: int, half: int) -> Any:
        stream = self.schedule.ops[op].stream
        stage, at = self.schedule.places.at[op]
        raw = self.step[stream, w] - stage + z3.If(self.place[stream, w] > 2 * at + half, 1, 0)
        top = self.limit(op)
        return z3.If(raw < 0, 0, z3.If(raw > top, top, raw))

    def begun(self, op: str, w: int) -> Any:
        return self._passed(op, w, 0)

    def complete(self, op: str, w: int) -> Any:
        return self.count[op, w] if (op, w) in self.count else self._passed(op, w, 1)

    def at_least(self, op: str, w: int, count: Any) -> Any:
        """Whether so many instances, or all that there are, are complete."""
        top = self.limit(op)
        return self.complete(op, w) >= z3.If(count > top, top, count)


def warps(schedule: Schedule, stream: str) -> tuple[int, ...]:
    return schedule.body.warps(next(s.op for s in schedule.streams[stream]), schedule.uneven)


class _Prover:
    """``memory``: ask whether dependences are kept; ``progress``: whether anybody is lapped in a slot, or stuck."""

    def __init__(
        self,
        schedule: Schedule,
        rlimit: int,
        most: int,
        written: Certificates | None,
        memory: bool,
        progress: bool,
    ) -> None:
        self.schedule, self.rlimit, self.most, self.written = schedule, rlimit, most, written
        self.memory, self.progress = memory, progress
        self.context = z3.Context()
        self.trips: Any = z3.Int("N", self.context)
        last = self.trips - 1 + max(schedule.stages(s) for s in schedule.streams)
        self.now = _State(schedule, self.trips, last)
        self.failures: list[str] = []
        self.cases = 0

    def run(self) -> Proof:
        invariant = list(self.invariant(self.now))
        for slots in {t.slots for t in self.schedule.tokens.values() if t.kind == SIGNAL}:
            if slots > MOST_SLOTS or not phase_lemma(slots):
                self.failures.append(f"a phase bit does not tell instances of {slots} slots apart")
        zero = [x == 0 for v in (self.now.step, self.now.place, self.now.count) for x in v.values()]
        self.ask("the start", *zero, self.trips >= 1, z3.Not(z3.And(invariant)))
        moves = list(self.moves())
        self.ask_all((*self.kept(moves, invariant), *(self.dependences() if self.memory else ())), invariant)
        if len(self.failures) < self.most and self.progress:
            over = z3.And(
                [self.now.step[a] == self.now.last for a in self.now.step if self.schedule.streams[a[0]]]
            )
            stuck = [z3.Not(enabled) for _, enabled, _, _ in moves]
            self.ask("somebody can go on", *invariant, z3.Not(over), *stuck)
        return Proof(tuple(self.failures), self.cases)

    def ask(self, what: str, *facts: Any) -> None:
        """Note a failure unless the facts contradict each other."""
        self.cases += 1
        solver = z3.Tactic("smt", ctx=self.context).solver()
        solver.set("rlimit", self.rlimit)
        solver.set("arith.solver", SIMPLEX)
        solver.add(*facts)
        answer = solver.check()
        if self.written is not None:
            self.written.keep(what, solver, answer)
        if answer != z3.unsat:
            self.failures.append(f"{what}: {'not proved' if answer == z3.unknown else 'it need not'}")

    def ask_all(self, cases: Sequence[tuple[str, Any]], invariant: Sequence[Any]) -> None:
        """Note a failure for each case that does not contradict the invariant. Several are asked about at once: it is quicker."""
        for n in range(0, len(cases), TOGETHER):
            some, before = cases[n : n + TOGETHER], len(self.failures)
            self.ask("; ".join(what for what, _ in some), *invariant, z3.Or([x for _, x in some]))
            if len(self.failures) == before:
                self.cases += len(some) - 1
                continue
            del self.failures[before:]
            for what, x in some:
                if len(self.failures) >= self.most:
                    return
                self.ask(what, *invariant, x)

    def kept(self, moves: Sequence[Move], invariant: Sequence[Any]) -> Iterator[tuple[str, Any]]:
        """That a move ends outside of the invariant."""
        concerned = [(x, _names(x)) for x in invariant]
        for name, enabled, change, w in moves:
            if w and not self.schedule.uneven:
                continue  # it keeps what the other warp's move keeps, with the names of both exchanged everywhere
            changed = {str(variable) for variable, _ in change}
            touched = [z3.substitute(x, *change) for x, used in concerned if not changed.isdisjoint(used)]
            yield f"{name} keeps the order", z3.And(enabled, z3.Not(z3.And(touched)))

    def waits(self) -> Iterator[tuple[Step, int, Wait, Token]]:
        for stream, steps in self.schedule.streams.items():
            for s in steps:
                for wait in s.waits:
                    for w in warps(self.schedule, stream):
                        yield s, w, wait, self.schedule.tokens[wait.token]

    def watched(self, token: Token, op: str, w: int) -> list[Agent]:
        """Whose completions warp ``w`` of ``op`` waits for: its own for what only the issuer sees, else those of all warps."""
        if token.kind == BARRIER:
            return [(op, x) for x in warps(self.schedule, self.schedule.ops[op].stream) if x != w]
        own = token.kind in (GROUP, INTERLOCK)
        return [(u, x) for u in token.producers for x in ((w,) if own else tellers(self.schedule, token, u))]

    def gap(self, token: Token, x: str, op: str, wait: Wait) -> int:
        """x(i - gap) is complete when ``op`` of iteration i has waited for a group."""
        queue = self.schedule.body.queue(token.producers[0])
        return self.schedule.places.group_gap(queue, x, op, wait.distance)

    def may_pass(self, step: Step, w: int, wait: Wait, i: Any) -> Any:
        token, now = self.schedule.tokens[wait.token], self.now
        if token.kind == GROUP:
            queue = self.schedule.body.queue(token.producers[0])
            return z3.And([now.at_least(x, w, i - self.gap(token, x, step.op, wait) + 1) for x in queue])
        j = i - wait.distance
        here = [now.complete(u, x) >= j + 1 for u, x in self.watched(token, step.op, w)]
        return z3.Or(j < 0, z3.And(here, self.context) if here else z3.BoolVal(True, self.context))

    def invariant(self, at: _State) -> Iterator[Any]:
        yield at.trips >= 1
        for (s, w), step in at.step.items():
            steps, place = self.schedule.streams[s], at.place[s, w]
            yield from (step >= 0, step <= at.last, place >= 0, place < 2 * max(1, len(steps)))
            yield z3.Implies(step == at.last, place == 0)
            for n, x in enumerate(steps):
                o = self.schedule.ops[x.op]
                runs = place == 2 * n + 1
                if o.asynchronous:
                    yield z3.Not(runs)
                elif o.kind != MEET:
                    yield z3.Implies(runs, z3.And(step >= x.stage, step - x.stage < at.trips))
        for (u, w), count in at.count.items():
            yield count >= 0
            yield from (count <= at.begun(u, x) for x in self.started_by(u, w))
            for x in self.schedule.body.queue(u):
                if x != u and self.schedule.body.same_queue(x, u):
                    yield z3.Or(count == 0, at.at_least(x, w, count - self.schedule.gap(x, u)))
        for step, w, wait, token in self.waits():
            yield from self.waited(at, step.op, w, wait, token)

    def waited(self, at: _State, op: str, w: int, wait: Wait, token: Token) -> Iterator[Any]:
        """What is so once ``op`` has waited; and that no arrival laps the slots of a token."""
        begun = at.complete(op, w) if token.kind == BARRIER else at.begun(op, w)
        if token.kind == GROUP:
            for x in self.schedule.body.queue(token.producers[0]):
                yield z3.Or(begun == 0, at.at_least(x, w, begun - self.gap(token, x, op, wait)))
            return
        need = begun - wait.distance
        for u, x in self.watched(token, op, w):
            have, top = self.event(at, token, u, x), at.limit(u)
            yield z3.Or(begun == 0, have >= z3.If(need > top, top, need))
            if token.kind == SIGNAL and self.progress:
                over = at.begun(op, w) == at.limit(op)
                yield z3.Or(over, have <= z3.If(need > 0, need, 0) + token.slots)
                for v, y in self.watched(token, op, w):
                    if (v, y) != (u, x):
                        yield have <= self.event(at, token, v, y) + token.slots

    def event(self, at: _State, token: Token, u: str, w: int) -> Any:
        """Who waits at a barrier waits for the others to come; elsewhere for an end."""
        return at.begun(u, w) if token.kind == BARRIER else at.complete(u, w)

    def moves(self) -> Iterator[Move]:
        now = self.now
        for (s, w), step in now.step.items():
            steps, place = self.schedule.streams[s], now.place[s, w]
            for n, x in enumerate(steps):
                o, i = self.schedule.ops[x.op], step - x.stage
                exists = z3.BoolVal(True, self.context) if o.kind == MEET else z3.And(i >= 0, i < self.trips)
                here = z3.And(step < now.last, place == 2 * n)
                over = [(step, step + 1), (place, self.number(0))]
                done = over if n + 1 == len(steps) else [(place, self.number(2 * n + 2))]
                ready = [self.may_pass(x, w, t, i) for t in x.waits if self.kind(t) != BARRIER]
                if o.kind != MEET:
                    yield f"{x.op} left out", z3.And(here, z3.Not(exists)), done, w
                begin = done if o.asynchronous else [(place, self.number(2 * n + 1))]
                yield f"the begin of {x.op}", z3.And([here, exists, *ready]), begin, w
                if not o.asynchronous:
                    met = [
                        now.begun(u, y) >= i + 1
                        for t in x.waits
                        if self.kind(t) == BARRIER
                        for u, y in self.watched(self.schedule.tokens[t.token], x.op, w)
                    ]
                    yield f"the end of {x.op}", z3.And([step < now.last, place == 2 * n + 1, *met]), done, w
        for (u, w), count in now.count.items():
            before = [
                now.at_least(x, w, count - self.schedule.gap(x, u) + 1)
                for x in self.schedule.body.queue(u)
                if x != u and self.schedule.body.same_queue(x, u)
            ]
            ends = z3.And([*(count < now.begun(u, x) for x in self.started_by(u, w)), *before])
            yield f"the completion of {u}", ends, [(count, count + 1)], w

    def started_by(self, u: str, w: int) -> tuple[int, ...]:
        """The warps that must have begun an op before it ends for warp ``w``."""
        return w, *self.schedule.body.mates(u, w, self.schedule.uneven and not self.memory)

    def number(self, n: int) -> Any:
        return z3.IntVal(n, self.context)

    def kind(self, wait: Wait) -> str:
        return self.schedule.tokens[wait.token].kind

    def dependences(self) -> Iterator[tuple[str, Any]]:
        """That what memory demands is not so, between any two warps."""
        order: Order = order_of(self.schedule)
        for d in self.schedule.deps:
            distance = d.at(self.schedule.depth)
            for (u, x, _), (v, y, _) in order.demands(d):
                if x == y and order.in_turn(d, distance):
                    continue
                kept = self.now.at_least(u, x, self.now.begun(v, y) - distance)
                yield f"{d}", z3.Not(kept)
