"""One stream of a scheduled loop as statements: a kernel step runs every op of the stream, of an iteration as old as its stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from ...dtypes import INT32
from ...expr import Expr, Var, binary, const, dim
from ...expr.intervals import Interval
from ...inference.schedule.program import Schedule, Step, Token
from ...program import Bind, For, Stmt
from .barriers import UniformFor, UniformIf
from .context import Context
from .signals import SIGNAL, Signals

Run = Callable[[str, Expr, Expr], Iterable[Stmt]]


@dataclass(frozen=True)
class KernelSteps:
    """``base``: how many iterations ran before this run of the loop. ``run``: the statements of an op, given the number of
    the iteration in this run and in all, and how it tells that it is done. ``wait_group``: before the first op wait until
    of the groups that the second belongs to so many are pending. ``left_out``: what an op does at a step without an
    iteration. ``waited``: the statements of an op's wait for a token, as this stream does it. ``settled``: what stands
    between the loop and the last, partial steps: after it no group of this stream is at work. ``settle``: the same among
    those steps, where the waits of the loop's own steps are missing. ``turns``: the first and the last op that groups of
    threads do in turn; ``begin`` and ``end`` of a turn. ``masked``: from which kernel step on, given
    its counter, seldom steps have something to do; ``seldom`` is told whether they have in what is lowered next.
    ``ahead``: what an op does before its waits, given the iteration. ``closing``: the end of each kernel step, of those after the
    loop apart.
    """

    context: Context
    signals: Signals
    name: str
    loop: For
    schedule: Schedule
    stream: str
    base: Expr
    run: Run
    wait_group: Callable[[str, str, int], Iterable[Stmt]]
    left_out: Callable[[str], tuple[Stmt, ...]]
    waited: Callable[[str, Token, Iterable[Stmt]], Iterable[Stmt]]
    settled: tuple[Stmt, ...] = ()
    settle: tuple[Stmt, ...] = ()
    turns: tuple[str, str] = ("", "")
    begin: tuple[Stmt, ...] = ()
    end: tuple[Stmt, ...] = ()
    masked: Callable[[Var], Expr | None] = lambda _: None
    seldom: Callable[[bool | None], None] = lambda _: None
    ahead: Callable[[str, Expr], Iterable[Stmt]] = lambda _op, _iteration: ()
    closing: tuple[Stmt, ...] = ()

    def statements(self) -> Iterator[Stmt]:
        extent, first, k = self.loop.extent, self.apart, self.counter()
        for n in range(first):
            body = [*(s for step in self.steps for s in self.early(step, n)), *self.closing]
            yield UniformIf(binary(">", extent, n), tuple(body), span=self.loop.span)
        edge = self.masked(k)
        if edge is None:
            yield self.steady(k, const(first), extent)
        else:
            until = Var("edge", INT32, self.context.unique("edge"))
            within = binary("max", binary("min", edge, extent), first)
            yield Bind(until, self.context.simple(within))
            for begin, stop, any_masked in ((const(first), until, False), (until, extent, True)):
                self.seldom(any_masked)
                yield self.steady(k, begin, stop)
            self.seldom(None)
        yield from self.settled
        yield from self.last()

    def steady(self, k: Var, begin: Expr, stop: int | Expr) -> Stmt:
        """Whole kernel steps from ``begin`` on."""
        body = [*(s for step in self.steps for s in self.guarded(step, k)), *self.closing]
        count = stop if getattr(begin, "value", None) == 0 else dim(binary("-", stop, begin))
        return UniformFor(k, begin, count, tuple(body), span=self.loop.span)

    @property
    def apart(self) -> int:
        """How many first steps stand before the loop: all that lack an iteration of some op, where that may be a product.

        In the loop a product then is under no condition: behind one the compiler would not know how many are at work.
        """
        late = [s.stage for s in self.steps if self.left_out(s.op)]
        return max((s.stage for s in self.steps), default=0) if any(late) else 0

    def early(self, step: Step, n: int) -> Iterator[Stmt]:
        """What an op does at kernel step ``n`` before the loop."""
        if step.stage <= n:
            yield from self.one(step, const(n - step.stage))
        else:
            yield from self.groups(step)
            yield from self.left_out(step.op)
            yield from self.end if step.op == self.turns[1] else ()

    def last(self) -> Iterator[Stmt]:
        """The steps of iterations that began before the loop ended.

        Those of one iteration stand in one branch, and what an engine begins there ends there. An op that tells others of a
        group's end may have no wait of its own, where in the loop another step waits in between.
        """
        extent = self.loop.extent
        late = [
            (step.stage - n, step)
            for n in range(max((s.stage for s in self.steps), default=0))
            for step in self.steps
            if step.stage > n and not (isinstance(extent, int) and extent < step.stage - n)
        ]
        for back, run in groupby(late, key=lambda x: x[0]):
            body: list[Stmt] = []
            working = False
            for _, step in run:
                begins = bool(self.left_out(step.op))
                body += self.settle if working and not begins else ()
                body += self.one(step, binary("+", extent, -back), groups=False, turns=False)
                working = begins
            body += self.settle if working else ()
            if isinstance(extent, int):
                yield from body
            else:
                yield UniformIf(binary(">=", extent, back), tuple(body), span=self.loop.span)

    def counter(self) -> Var:
        """Counts kernel steps: the user's own variable, if it counts iterations from 0."""
        extent, own = self.loop.extent, self.loop.var
        plain = getattr(self.loop.start, "value", None) == 0 and self.loop.step == 1
        if plain and own is not None and own.dtype == INT32:
            self.context.ranges[own] = Interval(0, extent - 1 if isinstance(extent, int) else None)
            return own
        return self.context.var("step", extent if isinstance(extent, int) else 1 << 31)

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.schedule.streams[self.stream]

    def guarded(self, step: Step, k: Var) -> Iterator[Stmt]:
        if step.stage <= self.apart:
            yield from self.one(step, binary("-", k, step.stage) if step.stage else k)
            return
        # without an iteration there is less to wait for: no branch around what the compiler takes for a change of registers
        yield from self.groups(step)
        body = tuple(self.one(step, binary("-", k, step.stage), groups=False))
        yield UniformIf(binary(">=", k, step.stage), body, self.left_out(step.op), span=self.loop.span)

    def groups(self, step: Step) -> Iterator[Stmt]:
        """The waits of a step for groups. Steps that are left out after the loop begin none: there ``settle`` stands for them."""
        for w in step.waits:
            token = self.schedule.tokens[w.token]
            if token.kind == "group":
                yield from self.wait_group(step.op, token.producers[0], w.distance)

    def one(self, step: Step, iteration: Expr, groups: bool = True, turns: bool = True) -> Iterator[Stmt]:
        instance = self.context.simple(binary("+", self.base, iteration))
        if groups:
            yield from self.groups(step)
        yield from self.ahead(step.op, iteration)
        for w in step.waits:
            token = self.schedule.tokens[w.token]
            if token.kind == SIGNAL:
                yield from self.waited(step.op, token, self.signals.wait(self.name, token, w, instance))
        yield from self.begin if turns and step.op == self.turns[0] else ()
        yield from self.run(step.op, iteration, instance)
        yield from self.end if turns and step.op == self.turns[1] else ()
