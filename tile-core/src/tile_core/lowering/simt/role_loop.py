"""One scheduled loop in one role: the copies that are started, or what the user's threads do, and how each tells the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...dtypes import INT32
from ...expr import Buffer, Expr, Load, Space, Var, binary, const, substitute
from ...expr.intervals import Interval
from ...inference.schedule.program import Schedule
from ...program import Bind, Copy, For, Gemm, If, Place, Stmt, Store, Sync
from ...program.visit import mapped
from .engine_gemm import hold, product
from .kernel_steps import KernelSteps

if TYPE_CHECKING:
    from .roles import Roles

COPY, MAIN = "copy", "main"


def is_end(op: str) -> bool:
    """Whether an op of a schedule is the end of an asynchronous one, as its own stream sees it."""
    return op.endswith(".done")


@dataclass
class RoleLoop:
    """``ops``: the statement of each op of the schedule. ``counter``: iterations of all runs so far; None if it runs once."""

    roles: Roles
    name: str
    loop: For
    schedule: Schedule
    stream: str
    counter: Buffer | None

    def __post_init__(self) -> None:
        self.context, self.engines = self.roles.context, self.roles.engines
        names = self.context.plan.graph.names
        self.ops = {names[id(s)]: s for s in self.loop.body if id(s) in names and not isinstance(s, Bind)}
        self.binds: dict[Var, Expr] = {}
        for s in self.loop.body:
            if isinstance(s, Bind):
                self.binds[s.var] = substitute(s.value, self.binds)

    def statements(self) -> Iterator[Stmt]:
        base: Expr = const(0)
        if self.counter is not None:
            base = Var("base", INT32, self.context.unique("base"))
            self.context.ranges[base] = Interval(0, None)
            yield Bind(base, Load(self.counter, ()))
        yield from KernelSteps(
            self.context,
            self.roles.signals,
            self.name,
            self.loop,
            self.schedule,
            self.stream,
            base,
            self.start_copy if self.stream == COPY else self.own_op,
            lambda _op, pending: self.engines.settle("tensor", pending),
            tuple(self.settled()) if self.stream == MAIN else (),
        ).statements()
        if self.counter is not None:
            yield Store(self.counter, (), binary("+", base, self.loop.extent))

    def values(self, iteration: Expr) -> dict[Var, Expr]:
        """What the loop's variable and the scalars bound in its body are in the iteration of that number."""
        if self.loop.var is None or iteration is self.loop.var:
            return self.binds
        now = {self.loop.var: binary("+", self.loop.start, binary("*", iteration, self.loop.step))}
        return {**{v: substitute(x, now) for v, x in self.binds.items()}, **now}

    # The copies.

    def start_copy(self, op: str, iteration: Expr, instance: Expr) -> Iterator[Stmt]:
        """Start the boxes of one copy; the first copy of a token announces the bytes of all."""
        token = next(t for t in self.schedule.tokens.values() if op in t.producers)
        place = self.roles.signals.at(self.name, token, instance)
        copies = [s.op for s in self.schedule.streams[COPY] if s.op in token.producers]
        if op == copies[0]:
            yield self.engines.expect(place, sum(self.context.plan.bulk[c].bytes for c in copies))
        yield from self.boxes(op, iteration, instance, place)

    def boxes(self, op: str, iteration: Expr, instance: Expr, token: Place) -> Iterator[Stmt]:
        found, s, values = self.context.plan.bulk[op], self.ops[op], self.values(iteration)
        assert isinstance(s, Copy)
        start = [substitute(x, values) for x in found.start]
        flat, slot = self.roles.ring(s.dst.buffer.storage, instance)
        box = self.roles.box(found)
        for piece in found.pieces:
            at = [self.context.simple(binary("+", x, n)) for x, n in zip(start, piece.shift, strict=True)]
            into = Place(flat, (self.context.simple(binary("+", slot, piece.at)),), "w", window=True)
            yield self.engines.load(box, at, into, token)

    # The user's threads.

    def own_op(self, op: str, iteration: Expr, instance: Expr) -> Iterator[Stmt]:
        s = self.ops.get(op)
        if s is not None and not is_end(op):
            self.context.slots = {
                b: self.roles.ring(b, instance)[1] for b in self.schedule.depth if b in self.roles.rings
            }
            values = self.values(iteration)
            if isinstance(s, Gemm) and self.roles.on_engine(op):
                yield from self.multiply(op, s, iteration)
            else:
                yield from self.roles.lower((self.renamed(op, s, values) if values else s,))
            self.context.slots = {}
        yield from self.tell(op, instance)

    def multiply(self, op: str, s: Gemm, iteration: Expr) -> Iterator[Stmt]:
        fresh = s.c.buffer.storage in self.roles.absorbed.get(id(self.loop), ())
        accumulate: Expr = const(0) if s.clear else binary(">", iteration, 0) if fresh else const(1)
        written_here = [
            x
            for x in (s.a.buffer, s.b.buffer)
            if x.space is Space.SHARED and x.storage not in self.roles.rings
        ]
        if written_here:
            yield self.engines.visible()
            yield Sync(1, self.context.threads)
        yield from self.engines.multiply(product(self.context, op, s, self.roles.group, accumulate))
        if written_here:  # the threads may write these tiles again at once
            yield self.engines.settle("tensor", 0)

    def renamed(self, op: str, s: Stmt, values: dict[Var, Expr]) -> Stmt:
        """``s`` with variables replaced; it keeps the name of its node."""

        def body(b: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
            return tuple(mapped(t, lambda x: substitute(x, values), body) for t in b)

        (new,) = body((s,))
        self.context.aliases[id(new)] = (new, op)
        return new

    def tell(self, op: str, instance: Expr) -> Iterator[Stmt]:
        """Arrive at the tokens that wait for this op."""
        for token in self.schedule.tokens.values():
            if token.kind != "signal" or op not in token.producers:
                continue
            arrive = self.engines.arrive(self.roles.signals.at(self.name, token, instance))
            together = self.roles.rules.group if is_end(op) else self.context.plan.info.subgroup
            if not is_end(op):
                yield self.engines.subgroup_sync()
            yield If(binary("==", binary("%", self.context.thread, together), 0), (arrive,))

    def settled(self) -> Iterator[Stmt]:
        """No product of this loop is at work any more, and the accumulators may be used."""
        used = [s for op, s in self.ops.items() if isinstance(s, Gemm) and self.roles.on_engine(op)]
        if used:
            yield self.engines.settle("tensor", 0)
        for c in dict.fromkeys(s.c.buffer.storage for s in used):
            yield hold(self.context, self.engines, c)
