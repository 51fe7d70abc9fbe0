"""One scheduled loop in one role: the copies that are started, or what the user's threads do, and how each tells the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, cast

from ...dtypes import BOOL, INT32
from ...expr import Buffer, Expr, Load, Space, Var, binary, const, loads, substitute
from ...expr.intervals import Interval
from ...inference.schedule.model import MEET
from ...inference.schedule.program import Schedule, Token, Wait
from ...inference.schedule.rescaling import rescaled
from ...program import AtomicTile, Bind, Copy, For, Gemm, If, Stmt, Store
from ...program.visit import (
    mapped,
    read_storages,
    statements,
    touched_storages,
    written_buffers,
    written_storages,
)
from ...verification.bounds import ranges_of
from .barriers import UniformIf
from .box_add import proves_inside
from .engine_gemm import hold
from .kernel_steps import KernelSteps
from .late_sums import late_sums
from .loop_copies import LoopCopies
from .needed import Needed
from .product_ends import ProductEnds
from .products import Products
from .role_split import ops_of
from .signals import SIGNAL
from .telling import COPY, is_end

if TYPE_CHECKING:
    from .roles import Roles
    from .sums import Sums


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
        self.ops = ops_of(self.context, self.loop)
        self.own_rings = [t.buffer for t in self.schedule.body.storage if t.filled and t.buffer is not None]
        self.computes = self.stream != COPY
        mine = (s for op, s in self.ops.items() if self.ops_stream(op) == self.stream)
        self.rewritten = {b.storage for s in statements(mine) for b in written_buffers(s)}
        self.copies, self.needed, self.ends = LoopCopies(self), Needed(self), ProductEnds(self)
        self.binds: dict[Var, Expr] = {}
        for s in self.loop.body:
            if isinstance(s, Bind):
                self.binds[s.var] = substitute(s.value, self.binds)

    def statements(self) -> Iterator[Stmt]:
        sums = self.roles.sums if self.computes else None
        if sums and (kept := [c for c in self.accumulators() if c not in self.fresh()]):
            yield from (*sums.put(*kept), sums.meet(), sums.memory.after())
        if self.computes:
            self.prove_sums()
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
        if self.computes and any(self.operands_of_threads(s) - self.rewritten for s in self.products()):
            yield from self.shown()  # before the loop: nobody writes them while it runs
        late = [s for s in late_sums(self.context, self.loop) if self.ops_stream(s.reduces[0]) == self.stream]
        self.context.apart |= {name for s in late for name in s.reduces}
        for s in late:
            yield from s.split(self.context)
        yield from KernelSteps(
            self.context,
            self.roles.signals,
            self.name,
            loop,
            self.schedule,
            self.stream,
            base,
            self.copies.start if self.stream == COPY else self.own_op,
            self.ends.wait,
            self.left_out,
            self.waited,
            (*self.settled(not self.ends_settled()), *self.leads_read()) if self.computes else (),
            tuple(self.settled()) if self.computes else (),
            self.in_turn,
            tuple(self.roles.turns.begin()),
            tuple(self.roles.turns.end()),
            self.needed.masked_from,
            self.needed.seldom,
            self.copies.ahead,
            # a product at work over a loop's end, beside barriers, makes the compiler wait for each (NVRTC's C7514)
            (self.engines.settle("tensor", 0),) if self.meets and not self.ends_settled() else (),
        ).statements()
        if sums:
            yield from self.fetched(sums, loop.extent)
        for s in late:
            yield from s.joined(self.context)
        if self.counter is not None:
            yield Store(self.counter, (), binary("+", base, loop.extent))
        else:
            yield from self.drained(loop.extent)

    def prove_sums(self) -> None:
        """Where sums begin, for any iteration: steps of iterations that began before the loop have other expressions for it."""
        outside = self.context.known
        self.context.known = outside.having(dict(ranges_of(self.loop)))
        for s in self.ops.values():
            if isinstance(s, AtomicTile):
                proves_inside(self.roles.team_stores, cast(AtomicTile, self.renamed(s, self.binds)))
        self.context.known = outside

    @cached_property
    def in_turn(self) -> tuple[str, str]:
        """The first and the last product of a step, where groups start theirs in turn: each has rows of its own, and more to do.

        Two products and what lies between them are a chain; a group alone would leave the engine idle while it computes.
        """
        order = [s.op for s in self.schedule.streams[self.stream] if self.roles.on_engine(s.op)]
        apart = all(self.context.plan.atoms[op].warps == (self.roles.groups, 1) for op in order)
        meeting = any(self.operands_of_threads(s) & self.rewritten for s in self.products())
        alone = self.roles.sums is None and self.roles.turns.possible
        if not self.computes or len(order) < 2 or not apart or meeting or not alone:
            return "", ""
        return order[0], order[-1]

    def read_early(self) -> list[Copy]:
        """Tiles filled before the loop that nobody reads any more when its last whole step is over."""
        if self.roles.sums is not None:
            return []

        def late(s: Gemm) -> bool:
            op = next(op for op, t in self.ops.items() if t is s)
            return self.schedule.step(op).stage > 0

        return [s for s in self.roles.leads.read_early(self.loop, late) if self.roles.crew.concerns(s)]

    def leads_read(self) -> Iterator[Stmt]:
        for s in self.read_early():
            yield from self.roles.leads.released(s, self.roles.signals)

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

    def own_op(self, op: str, iteration: Expr, instance: Expr) -> Iterator[Stmt]:
        s, shown = self.ops.get(op), False
        if self.meets and self.schedule.ops[op].kind == MEET:
            yield self.context.meet()
        if s is not None and not is_end(op):
            outside = self.context.slots
            self.context.slots = outside | {b: self.roles.ring(b, instance)[1] for b in self.own_rings}
            values = self.values(iteration)
            if isinstance(s, Gemm) and self.roles.on_engine(op):
                yield from self.multiply(op, s, iteration, instance)
            else:
                self.roles.adder.instance = instance
                own = self.roles.lower((self.renamed(s, values) if values else s,))
                if self.schedule.ops[op].seldom:
                    own = self.if_any(s, own)
                yield from self.needed.where(op, own, values)
                shown = self.meets and self.shown_by(s)
                if shown:
                    yield self.engines.visible()
            self.context.slots = outside
        yield from self.tell(op, instance, shown)

    def if_any(self, s: Stmt, own: Iterable[Stmt]) -> tuple[Stmt, ...]:
        """``own``, which multiplies an accumulator by factors, in groups with a factor that is not one.

        Products may be at work: they are waited for only there, by the whole group that started them (PTX ISA,
        ``wgmma.wait_group``). To name the accumulator outside that branch would make the compiler wait in front of it.
        """
        found = rescaled(s)
        assert found is not None
        acc, factors = found
        registers = self.context.register_file(factors)
        differs: Expr = const(False)
        for n in range(prod(d for d in registers.shape if isinstance(d, int))):
            differs = binary("or", differs, binary("!=", Load(registers, (const(n),)), 1.0))
        some = Var("some", BOOL, self.context.unique("some"))
        body = (self.engines.settle("tensor", 0), hold(self.context, self.engines, acc.storage), *own)
        ask = self.engines.somewhere(
            self.context.simple(differs), self.roles.team_stores.number, self.roles.rules.group, some
        )
        return ask, UniformIf(some, body)

    def waited(self, op: str, token: Token, waits: Iterable[Stmt]) -> Iterable[Stmt]:
        """A wait by who needs it.

        Where the threads themselves do not touch what was copied, only the one that starts products waits: the others would not
        be asked before it is copied anew, and could miss a phase.
        """
        found = self.roles.arriving.get((self.name, token.name))
        if found is not None and found.reader == op and self.computes:
            return ()  # in front of each part
        sums = self.roles.sums
        if sums is None or self.stream == COPY or not self.roles.signals_itself(op):
            return waits
        touched = any(
            d.u in token.producers and self.ops_stream(d.v) != COPY and not self.roles.signals_itself(d.v)
            for d in self.schedule.deps
        )
        return waits if touched else (sums.leader(*waits),)

    def ops_stream(self, op: str) -> str:
        return self.schedule.ops[op].stream

    def left_out(self, op: str) -> tuple[Stmt, ...]:
        """A product without an iteration still counts as a group, so that the counts of waits hold."""
        grouped = self.roles.on_engine(op) and not self.roles.signals_itself(op)
        return (self.engines.commit("tensor"),) if grouped else ()

    def multiply(self, op: str, s: Gemm, iteration: Expr, instance: Expr) -> Iterator[Stmt]:
        fresh = s.c.buffer in self.roles.fresh(self.loop)
        accumulate: Expr = const(0) if s.clear else binary(">", iteration, 0) if fresh else const(1)
        if op in self.needed.when:
            accumulate = self.context.simple(substitute(self.needed.when[op], self.values(iteration)))
        order = [t.op for t in self.schedule.streams[self.stream] if self.roles.on_engine(t.op)]
        if len(order) > 1 and op == order[0]:
            for c in self.register_operands():
                yield hold(self.context, self.engines, c)
        sums = self.roles.sums if self.operands_of_threads(s) & self.rewritten else None
        if sums:
            yield from self.shown()
        yield from Products(self.roles).started(op, s, accumulate, self.arriving(op, instance))
        if sums:  # the threads may write these tiles again at once
            yield from sums.settled()

    def arriving(self, op: str, instance: Expr) -> dict[int, tuple[Stmt, ...]]:
        """Waits of a product for the parts of a tile, by the element along k that each part begins at."""
        out: dict[int, tuple[Stmt, ...]] = {}
        for w in self.schedule.step(op).waits:
            token, found = self.schedule.tokens[w.token], self.roles.arriving.get((self.name, w.token))
            if found is not None and found.reader == op:
                pieces = self.context.plan.bulk[token.producers[0]].pieces
                begins = sorted({p.shift[-1] for p in pieces})
                for part, at in enumerate(begins):
                    out[at] = tuple(self.roles.signals.wait(self.name, token, w, instance, part))
        return out

    def register_operands(self) -> list[Buffer]:
        """Fragments that products multiply before the step fills them anew.

        Held in front of the products that run together: a compiler that converts one between them would wait for the first.
        """
        found = (s.a.buffer.storage for s in self.products() if s.a.buffer.space is Space.FRAGMENT)
        steps = [self.ops[t.op] for t in self.schedule.streams[self.stream] if t.op in self.ops]

        def begins_full(c: Buffer) -> bool:
            first = next(s for s in steps if c in touched_storages(s))
            return all(c != b.storage for s in statements((first,)) for b in written_buffers(s))

        return [c for c in dict.fromkeys(found) if begins_full(c)]

    def operands_of_threads(self, s: Gemm) -> set[Buffer]:
        """Operands in shared memory that these threads write, and not only a copy engine or the other team."""
        found = {x.storage for x in (s.a.buffer, s.b.buffer) if x.space is Space.SHARED}
        return found - ((self.roles.rings.keys() | self.roles.crew.handed_over) - self.rewritten)

    @cached_property
    def meets(self) -> bool:
        """Whether the schedule's barriers are needed: products of groups read what other groups' threads write in the loop.

        Elsewhere barriers stand where the threads' own accesses ask for them.
        """
        written = (self.operands_of_threads(s) & self.rewritten for s in self.products())
        return self.computes and self.roles.sums is None and any(written)

    def shown_by(self, s: Stmt) -> bool:
        """Whether threads write in ``s`` what products read: then each says so at once, and a barrier follows."""
        read = {b for t in self.products() for b in self.operands_of_threads(t)}
        return bool(read & written_storages(s))

    def shown(self) -> Iterator[Stmt]:
        """What all of the user's threads wrote to shared memory is there for the engine's products."""
        yield self.engines.visible()
        yield self.context.meet()

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

    def tell(self, op: str, instance: Expr, shown: bool) -> Iterator[Stmt]:
        """Arrive at the tokens that wait for this op. ``shown``: engines see already what it wrote."""
        tokens = [t for t in self.schedule.tokens.values() if t.kind == SIGNAL and op in t.producers]
        if not tokens:
            return
        by_engine = self.roles.sums is not None and self.roles.signals_itself(op)
        each = {t.name for t in tokens if not self.roles.telling.told_once(self.name, t, op)}
        if each:
            # an end that threads' work is learnt by stands for all of their ops
            by_engine_next = is_end(op) or (not shown and not self.among_threads(op))
            yield from self.roles.signals.handed_back(by_engine_next)
        for token in tokens:
            place = self.roles.signals.at(self.name, token, instance)
            if by_engine and self.roles.sums is not None:
                yield self.roles.sums.leader(self.roles.sums.memory.finish(place))
                continue
            together = self.context.plan.info.subgroup if token.name in each else self.roles.rules.group
            inside = binary("%", self.context.thread, together)
            if self.roles.telling.releases_shared(self.name, token) and self.roles.sharing is not None:
                others = tuple(self.engines.arrive_at(place, inside))
                yield If(binary("<", inside, self.roles.sharing.blocks), others)
            else:
                yield If(binary("==", inside, 0), (self.engines.arrive(place),))

    def among_threads(self, op: str) -> bool:
        """Whether an op touches in shared memory only what threads alone read and write."""
        s = self.ops.get(op)
        engines = {
            b for n, t in self.ops.items() if n in self.context.plan.engines for b in touched_storages(t)
        }
        touched = (
            {b for b in touched_storages(s) if b.space is Space.SHARED} if s is not None else set[Buffer]()
        )
        return bool(touched) and not touched & engines

    def ends_settled(self) -> bool:
        """Whether each kernel step ends with a wait for all products."""
        steps = self.schedule.streams[self.stream]
        last = max((n for n, s in enumerate(steps) if self.roles.on_engine(s.op)), default=-1)
        return any(
            self.schedule.tokens[w.token].kind == "group" and w.distance == 0 and not s.stage
            for s in steps[last + 1 :]
            for w in s.waits
        )

    def accumulators(self) -> tuple[Buffer, ...]:
        """Fragments that products of this loop add to on the matrix engine."""
        return tuple(dict.fromkeys(s.c.buffer.storage for s in self.products()))

    def products(self) -> list[Gemm]:
        """Those of the matrix engine that this stream starts."""
        return [
            s
            for op, s in self.ops.items()
            if isinstance(s, Gemm) and self.roles.on_engine(op) and self.ops_stream(op) == self.stream
        ]

    def fresh(self) -> set[Buffer]:
        """Those of them that the first product begins."""
        return {c.storage for c in self.roles.fresh(self.loop)}

    def settled(self, wait: bool = True) -> Iterator[Stmt]:
        """No product of this loop is at work any more, and the accumulators may be used. ``wait``: some may be."""
        used = self.accumulators() if self.roles.sums is None else ()
        if used and wait:
            yield self.engines.settle("tensor", 0)
        for c in used:
            if c in self.lasting or not self.roles.scarce:
                yield hold(self.context, self.engines, c)

    @cached_property
    def lasting(self) -> set[Buffer]:
        """What is read when whole kernel steps are over: by steps of iterations that began before, or behind the loop.

        To name other accumulators there would keep registers taken.
        """
        late = [self.ops[s.op] for s in self.schedule.streams[self.stream] if s.stage and s.op in self.ops]
        inside = {id(s) for s in statements((self.loop,))}
        outer = [s for s in statements(self.roles.launch.body) if id(s) not in inside]
        found = {b for s in (*statements(late), *outer) for b in read_storages(s)}
        sums = (s for s in (*statements(late), *outer) if isinstance(s, Gemm) and not s.clear)
        return found | {s.c.buffer.storage for s in sums}

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
