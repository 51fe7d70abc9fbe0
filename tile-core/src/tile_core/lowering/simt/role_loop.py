"""One scheduled loop in one role: the copies that are started, or what the user's threads do, and how each tells the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...dtypes import INT32
from ...expr import Buffer, Expr, Load, Space, Var, binary, const, loads, substitute
from ...expr.intervals import Interval
from ...inference.schedule.program import Schedule, Token, Wait
from ...program import Alloc, Bind, Copy, For, Gemm, If, Place, Stmt, Store, Sync
from ...program.visit import mapped
from .barriers import UniformIf
from .engine_gemm import hold
from .kernel_steps import KernelSteps

if TYPE_CHECKING:
    from .roles import Roles
    from .sums import Sums

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
        graph = self.context.plan.graph
        self.ops = {
            graph.names.get(id(s)) or graph.region_of(s): s
            for s in self.loop.body
            if not isinstance(s, Bind | Alloc)
        }
        self.own_rings = [t.buffer for t in self.schedule.body.storage if t.filled and t.buffer is not None]
        self.binds: dict[Var, Expr] = {}
        for s in self.loop.body:
            if isinstance(s, Bind):
                self.binds[s.var] = substitute(s.value, self.binds)

    def statements(self) -> Iterator[Stmt]:
        sums = self.roles.sums if self.stream == MAIN else None
        if sums and (kept := [c for c in self.accumulators() if c not in self.fresh()]):
            yield from (*sums.put(*kept), sums.meet(), sums.memory.after())
        base: Expr = const(0)
        loop = self.loop
        if isinstance(loop.extent, Expr) and next(loads(loop.extent), None) is not None:
            # read once: what waits for tokens makes the compiler forget what it has read
            count = Var("count", INT32, self.context.unique("count"))
            yield Bind(count, loop.extent)
            loop = replace(loop, extent=count)
        if self.counter is not None:
            base = Var("base", INT32, self.context.unique("base"))
            self.context.ranges[base] = Interval(0, None)
            yield Bind(base, Load(self.counter, ()))
        yield from KernelSteps(
            self.context,
            self.roles.signals,
            self.name,
            loop,
            self.schedule,
            self.stream,
            base,
            self.start_copy if self.stream == COPY else self.own_op,
            self.wait_group,
            self.left_out,
            self.waited,
            tuple(self.settled(not self.ends_settled())) if self.stream == MAIN else (),
            tuple(self.settled()) if self.stream == MAIN else (),
            tuple(self.said_again()),
        ).statements()
        if sums:
            yield from self.fetched(sums, loop.extent)
        if self.counter is not None:
            yield Store(self.counter, (), binary("+", base, loop.extent))
        else:
            yield from self.drained(loop.extent)

    def drained(self, count: int | Expr) -> Iterator[Stmt]:
        """Until this stream was told of all that the engine did: it must not arrive at a token of a block that has ended.

        ``count``: iterations of all runs.
        """
        total = count if isinstance(count, Expr) else const(count)
        heard = {w.token for step in self.schedule.streams[self.stream] for w in step.waits}
        for token in self.schedule.tokens.values():
            if token.name in heard and any(self.roles.signals_itself(p) for p in token.producers):
                for back in range(token.slots, 0, -1):
                    w = Wait(token.name, back)
                    yield from self.roles.signals.wait(self.name, token, w, total)

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
        shared = self.roles.sharing if self.roles.sharing and op in self.roles.sharing.copies else None
        many = shared.blocks if shared else 1
        rank = self.roles.walk.rank
        box = self.roles.box(found, many)
        for piece in found.pieces:
            at = [binary("+", x, n) for x, n in zip(start, piece.shift, strict=True)]
            inside = binary("+", slot, piece.at)
            if many > 1 and found.rows is not None:
                part = found.box[found.rows] // many
                at[found.rows] = binary("+", at[found.rows], binary("*", rank, part))
                inside = binary("+", inside, binary("*", rank, part * found.box[-1]))
            into = Place(flat, (self.context.simple(inside),), "w", window=True)
            yield self.engines.load(
                box, [self.context.simple(x) for x in at], into, token, many, self.roles.hints.get(op)
            )

    # The user's threads.

    def own_op(self, op: str, iteration: Expr, instance: Expr) -> Iterator[Stmt]:
        s = self.ops.get(op)
        if s is not None and not is_end(op):
            self.context.slots = {b: self.roles.ring(b, instance)[1] for b in self.own_rings}
            values = self.values(iteration)
            if isinstance(s, Gemm) and self.roles.on_engine(op):
                yield from self.multiply(op, s, iteration)
            else:
                yield from self.roles.lower((self.renamed(s, values) if values else s,))
            self.context.slots = {}
        yield from self.tell(op, instance)

    def waited(self, op: str, token: Token, waits: Iterable[Stmt]) -> Iterable[Stmt]:
        """A wait by who needs it.

        Where the threads themselves do not touch what was copied, only the one that starts products waits: the others would not
        be asked before it is copied anew, and could miss a phase.
        """
        sums = self.roles.sums
        if sums is None or self.stream == COPY or not self.roles.signals_itself(op):
            return waits
        touched = any(
            d.u in token.producers and self.ops_stream(d.v) == MAIN and not self.roles.signals_itself(d.v)
            for d in self.schedule.deps
        )
        return waits if touched else (sums.leader(*waits),)

    def ops_stream(self, op: str) -> str:
        return self.schedule.ops[op].stream

    def wait_group(self, op: str, watched: str, pending: int) -> Iterator[Stmt]:
        """Wait for products. Accumulators that none of them writes any more may be used from here on."""
        yield self.engines.settle("tensor", pending)
        places, queue = self.schedule.places, self.schedule.body.queue(watched)
        done = [
            u for u in queue if pending == 0 or places.group_gap(queue, u, op, pending) <= places.gap(u, op)
        ]
        written = {u: s.c.buffer.storage for u in queue if isinstance(s := self.ops[u], Gemm)}
        for c in dict.fromkeys(written[u] for u in done):
            if all(u in done for u, other in written.items() if other == c):
                yield hold(self.context, self.engines, c)

    def left_out(self, op: str) -> tuple[Stmt, ...]:
        """A product without an iteration still counts as a group, so that the counts of waits hold."""
        grouped = self.roles.on_engine(op) and not self.roles.signals_itself(op)
        return (self.engines.commit("tensor"),) if grouped else ()

    def multiply(self, op: str, s: Gemm, iteration: Expr) -> Iterator[Stmt]:
        fresh = s.c.buffer in self.roles.fresh(self.loop)
        accumulate: Expr = const(0) if s.clear else binary(">", iteration, 0) if fresh else const(1)
        written_here = [
            x
            for x in (s.a.buffer, s.b.buffer)
            if x.space is Space.SHARED and x.storage not in self.roles.rings
        ]
        if written_here:
            yield self.engines.visible()
            yield Sync(1, self.context.threads)
        yield from self.roles.multiply(op, s, accumulate)
        if written_here:  # the threads may write these tiles again at once
            sums = self.roles.sums
            yield from sums.settled() if sums else (self.engines.settle("tensor", 0),)

    def renamed(self, s: Stmt, values: dict[Var, Expr]) -> Stmt:
        """``s`` with variables replaced; it and what is in it keep the names of their nodes."""
        names = self.context.plan.graph.names

        def body(b: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
            new = tuple(mapped(t, lambda x: substitute(x, values), body) for t in b)
            self.context.aliases.update(
                {id(n): (n, names[id(t)]) for n, t in zip(new, b, strict=True) if id(t) in names}
            )
            return new

        return body((s,))[0]

    def tell(self, op: str, instance: Expr) -> Iterator[Stmt]:
        """Arrive at the tokens that wait for this op."""
        for token in self.schedule.tokens.values():
            if token.kind != "signal" or op not in token.producers:
                continue
            place = self.roles.signals.at(self.name, token, instance)
            if self.roles.sums and self.roles.signals_itself(op):
                yield self.roles.sums.leader(self.roles.sums.memory.finish(place))
                continue
            together = self.roles.rules.group if is_end(op) else self.context.plan.info.subgroup
            if not is_end(op):
                yield self.engines.subgroup_sync()
            inside = binary("%", self.context.thread, together)
            if self.roles.releases_shared(self.name, token) and self.roles.sharing is not None:
                others = tuple(self.engines.arrive_at(place, inside))
                yield If(binary("<", inside, self.roles.sharing.blocks), others)
            else:
                yield If(binary("==", inside, 0), (self.engines.arrive(place),))

    def ends_settled(self, older: bool = False) -> bool:
        """Whether each kernel step ends with a wait for all products. ``older``: also a wait by an op of an older iteration."""
        steps = self.schedule.streams[MAIN]
        last = max((n for n, s in enumerate(steps) if self.roles.on_engine(s.op)), default=-1)
        return any(
            self.schedule.tokens[w.token].kind == "group" and w.distance == 0 and (older or not s.stage)
            for s in steps[last + 1 :]
            for w in s.waits
        )

    def said_again(self) -> Iterator[Stmt]:
        """At the head of a step, that no product is at work, where none is.

        It waits for nothing. But of products in branches, those of older iterations, a compiler does not see across the loop's
        end that they were waited for, and takes what threads do with accumulators for a conflict: then it runs all of the
        loop's products one after the other.
        """
        older = any(s.stage and self.roles.on_engine(s.op) for s in self.schedule.streams[self.stream])
        if self.stream == MAIN and self.roles.sums is None and older and self.ends_settled(older=True):
            yield self.engines.settle("tensor", 0)

    def accumulators(self) -> tuple[Buffer, ...]:
        """Fragments that products of this loop add to on the matrix engine."""
        used = [s for op, s in self.ops.items() if isinstance(s, Gemm) and self.roles.on_engine(op)]
        return tuple(dict.fromkeys(s.c.buffer.storage for s in used))

    def fresh(self) -> set[Buffer]:
        """Those of them that the first product begins."""
        return {c.storage for c in self.roles.fresh(self.loop)}

    def settled(self, wait: bool = True) -> Iterator[Stmt]:
        """No product of this loop is at work any more, and the accumulators may be used. ``wait``: some may be."""
        used = self.accumulators() if self.roles.sums is None else ()
        if used and wait:
            yield self.engines.settle("tensor", 0)
        for c in used:
            yield hold(self.context, self.engines, c)

    def fetched(self, sums: Sums, extent: int | Expr) -> Iterator[Stmt]:
        """After the loop the sums are in the registers; without an iteration a fresh one was never in the engine's memory."""
        used, fresh = self.accumulators(), self.fresh()
        if not used:
            return
        body = (*sums.finished(), *sums.fetched(*used))
        if isinstance(extent, int) or not fresh:
            yield from body if extent != 0 or not fresh else ()
        else:
            yield UniformIf(binary(">", extent, 0), body, span=self.loop.span)
