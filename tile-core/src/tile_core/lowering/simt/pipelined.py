"""Loops whose copies run ahead: a loop and its pipeline in, first steps and a loop over the steps that follow out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...expr import Binary, Buffer, Expr, Var, binary, const, expr, substitute
from ...expr.intervals import Interval
from ...program import Bind, Copy, For, If, Stmt, Sync
from ...program.visit import mapped
from .barriers import PipelinedFor, UniformFor, UniformIf
from .context import Context
from .instructions import ThreadCopies
from .pipeline import Pipeline, Step
from .places import slot_size, tile
from .thread_copies import thread_copy

Lowered = Callable[[Sequence[Stmt]], tuple[Stmt, ...]]


def lower_pipelined(
    context: Context, loop: For, pipeline: Pipeline, names: Callable[[Stmt], str], block: Lowered
) -> tuple[Stmt, ...]:
    """The loop by the steps of its pipeline. ``block`` lowers statements that are not copies running ahead."""
    unit = context.instructions.copies
    assert unit is not None and loop.var is not None
    work = _Loop(context, unit, loop, loop.var, pipeline, names, block)
    # of counted copies some are started for iterations that do not exist: nobody waits for them in the loop
    last = (unit.wait(0),) if unit.run > 1 else ()
    return (*work.first(), work.steady(), *last)


@dataclass(frozen=True)
class _Loop:
    context: Context
    unit: ThreadCopies
    loop: For
    var: Var
    pipeline: Pipeline
    names: Callable[[Stmt], str]
    block: Lowered

    @property
    def plain(self) -> bool:
        """Whether the loop's variable is the number of the iteration."""
        return self.loop.step == 1 and getattr(self.loop.start, "value", None) == 0

    def value(self, number: Expr) -> Expr:
        """The loop's variable in iteration ``number``."""
        return number if self.plain else binary("+", self.loop.start, binary("*", number, self.loop.step))

    def first(self) -> tuple[Stmt, ...]:
        """The steps before the first iteration is complete: only what has begun."""
        last = self.pipeline.last
        begun = [s for s in self.pipeline.steps if s.stage < last]
        copies = all(s.ahead for s in begun)
        step: Expr = self.context.var("t", last) if last > 1 else const(0)
        body: list[Stmt] = []
        for s in begun:
            body += [] if copies else self.waits(s)
            number = binary("-", step, s.stage)
            exists = binary("<", number, expr(self.loop.extent))
            started = exists if s.stage == 0 else binary("and", binary(">=", number, 0), exists)
            body += self.guarded(s, number, self.context.simple(started))
        if not isinstance(step, Var):
            return tuple(body)
        # copies into slots of their own do not meet each other, so they are one step for whoever places barriers
        loop = For if copies else UniformFor
        return (loop(step, const(0), last, tuple(body), "unroll", span=self.loop.span),)

    def steady(self) -> Stmt:
        """All steps from the one on that completes the first iteration; ``number`` is that iteration."""
        number = self.var if self.plain else Var("step", self.var.dtype, self.context.unique("step"))
        extent, last = self.loop.extent, self.pipeline.last
        self.context.ranges[number] = Interval(0, max(0, extent - 1) if isinstance(extent, int) else None)
        body: list[Stmt] = [] if self.plain else [Bind(self.var, self.value(number))]
        for s in self.pipeline.steps:
            body += self.waits(s)
            if s.stage == last:
                body += self.statement(s, number)
            else:
                body += self.later(s, number, last - s.stage)
        rings = frozenset(tile(self.context, b) for b in self.pipeline.depths)
        return PipelinedFor(number, const(0), extent, tuple(body), span=self.loop.span, rings=rings)

    def waits(self, s: Step) -> list[Stmt]:
        """What a step waits for."""
        out: list[Stmt] = [] if s.wait is None else [self.unit.wait(s.wait)]
        return [*out, Sync(span=self.loop.span)] if s.meet else out

    def later(self, s: Step, number: Var, distance: int) -> tuple[Stmt, ...]:
        """A statement of an iteration that may lie beyond the last one."""
        ahead = Var("ahead", number.dtype, self.context.unique("ahead"))
        self.context.ranges[ahead] = self.context.ranges[number]
        far = binary("+", number, distance)
        exists = binary("<", ahead, expr(self.loop.extent))
        return (Bind(ahead, far), *self.guarded(s, ahead, exists, far))

    def guarded(self, s: Step, number: Expr, exists: Expr, reached: Expr | None = None) -> tuple[Stmt, ...]:
        """A statement of iteration ``number`` where that exists; an asynchronous copy ends its group in any case.

        ``reached``: the number where it may also be one of an iteration that does not exist.
        """
        known = getattr(exists, "value", None)
        if s.ahead and self.unit.run > 1:
            return self.statement(s, number, None if known is True else exists, reached)
        body: tuple[Stmt, ...] = () if known is False else self.statement(s, number)
        if s.ahead:
            guarded = body if known is not None else (If(exists, body, span=self.loop.span),)
            return (*guarded, self.unit.commit())
        # a scope of its own for the loop's variable
        return (UniformIf(exists, (Bind(self.var, self.value(number)), *body)),) if body else ()

    def statement(
        self, s: Step, number: Expr, exists: Expr | None = None, reached: Expr | None = None
    ) -> tuple[Stmt, ...]:
        """A step of iteration ``number``; a copy brings zeros where ``exists`` does not hold."""
        statement = self.loop.body[s.position]
        at = number if reached is None else reached
        slots = {b: self.slot(b, at, depth) for b, depth in self.pipeline.depths.items()}
        self.context.slots.update(slots)
        if s.ahead:
            moved = mapped(statement, lambda x: substitute(x, {self.var: self.value(number)}))
            assert isinstance(moved, Copy)
            out = thread_copy(self.context, self.unit, self.names(statement), moved, exists)
        else:
            out = self.block((statement,))
        for b in slots:
            del self.context.slots[b]
        return out

    def slot(self, storage: Buffer, number: Expr, depth: int) -> Expr:
        """Where the slot of iteration ``number`` begins."""
        at = self.context.simple(binary("%", number, depth))
        # iterations count from 0, so that the remainder of the hardware will do
        at = binary("truncmod", at.a, at.b) if isinstance(at, Binary) and at.op == "%" else at
        return binary("*", at, slot_size(self.context, storage))
