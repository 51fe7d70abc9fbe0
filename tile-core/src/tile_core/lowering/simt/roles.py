"""Launches whose copies run ahead in a subgroup of their own: what each role does, and how the roles tell each other.

One more group of threads is added to the block. One of its threads starts the copies of all scheduled loops, the user's own threads
do the rest; both walk the same loops, and wait for each other's tokens only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ...dtypes import BOOL, HANDLE, INT32, UINT64
from ...errors import InternalError
from ...expr import Buffer, Expr, Load, Space, Var, binary, const
from ...expr.intervals import Interval
from ...inference.bulk import BoxCopy
from ...inference.schedule.program import Schedule, Token
from ...inference.teams import FRONT, OWN, Teams, read, written
from ...program import Alloc, Bind, Copy, Fill, For, Gemm, If, Launch, Place, Stmt, Store, Sync
from ...program.visit import statements
from . import quotas
from .arena import Arena, placed_tiles
from .arriving import arriving
from .barriers import Pending, synchronised
from .box_store import GROUP_BARRIERS, BoxStore
from .boxes import BoxMap
from .context import Context, Team
from .engine_gemm import hold, product, zero
from .following import leaving, waiting
from .leads import LEAD, Leads
from .matrix_store import matrix_store
from .persistent import Walk, walk
from .places import slot_size, tile
from .residency import resident, tile_bytes
from .reuse import reuse
from .role_loop import COPY, RoleLoop
from .role_split import fresh_fills, has_products, is_zero, walkable
from .signals import Signals
from .sums import Sums
from .turns import Turns
from .uneven import deal, has_many, lengths, rising

RESERVED = 2048  # bytes of shared memory: tokens, and what alignment costs
TEAMS_BARRIER, FRONT_BARRIER = 15, 14  # named barriers: of both teams, and of the front
STAGING = 16384  # bytes that the results of a group should find on their way out: 128 rows of 128

Lower = Callable[[Sequence[Stmt]], tuple[Stmt, ...]]


@dataclass
class Roles:
    """How one launch is split. ``loops``: the scheduled loops by name. ``lower``: the statements of the user's threads.
    ``resident``: blocks that should find room on a core.

    After ``run``, ``maps`` are the parameters that describe tensors to the copy engine, and ``conditions`` what must hold at
    a launch, and ``places`` where the tiles are.
    """

    context: Context
    launch: Launch
    lower: Lower
    loops: dict[str, For]
    walk: Walk
    resident: int
    maps: dict[BoxMap, Var] = field(default_factory=dict[BoxMap, Var])
    conditions: dict[Expr, None] = field(default_factory=dict[Expr, None])
    counters: dict[tuple[str, str], Buffer] = field(default_factory=dict[tuple[str, str], Buffer])

    @staticmethod
    def of(context: Context, launch: Launch, lower: Lower) -> Roles | None:
        """The split of a launch; None if it has nothing for engines that work by themselves.

        Where a loop cannot be walked by two roles, no copy runs ahead, and products are waited for at once.
        """
        info = context.plan.info
        if context.instructions.bulk is None or info.bulk is None or launch.thread_vars:
            return None
        if launch.thread_count % info.bulk.group:
            return None
        loops = walkable(context, launch)
        if not loops and not has_products(context, launch):
            return None
        own = {name: context.plan.schedules[name] for name in loops}
        ahead = any(COPY in s.streams for s in own.values())
        groups = launch.thread_count // info.bulk.group
        copying = info.bulk.group * quotas.FEW_REGISTERS.get(groups, quotas.FEWEST_REGISTERS) if ahead else 0
        used = tile_bytes(context.plan, launch, own) + RESERVED + groups * STAGING
        blocks = resident(context.plan, launch, copying, used)
        number = next(n for n, s in enumerate(context.plan.program.launches) if s is launch)
        sharing = context.plan.sharing.get(number)
        # a block whose copies run ahead goes on to its next tile without a pause. Others are better replaced by the next one,
        # and so are blocks of which some have much more to do: who gets the next tile is then not known before
        even = next(lengths(launch, loops.values()), None) is None
        first = rising(context, launch, loops.values())
        dealt = (
            deal(context, launch, tuple(loops.values()), first, blocks) if ahead and sharing is None else None
        )
        many = sharing is None and has_many(context, launch, blocks)
        order = walk(
            context,
            launch,
            sharing,
            blocks if ahead and (even or many) else None,
            None if dealt or many else first,
            dealt,
            rotating=not even and dealt is None and many,
        )
        return Roles(context, launch, lower, loops, order, blocks)

    def __post_init__(self) -> None:
        plan, engines, rules = self.context.plan, self.context.instructions.bulk, self.context.plan.info.bulk
        assert engines is not None and rules is not None
        self.engines, self.rules = engines, rules
        self.places = Arena({}, {}, 0)
        self.sharing = self.walk.sharing
        self.groups = self.launch.thread_count // rules.group
        self.teams = Teams.of(self.launch)
        self.own, self.front = self.context.team, self._front()
        self.group = Var("group", INT32, self.context.unique("group"))
        self.context.ranges[self.group] = Interval(0, self.groups - 1)
        self.names = {id(s): name for name, s in self.loops.items()}
        self.schedules: dict[str, Schedule] = {name: plan.schedules[name] for name in self.loops}
        self.hints = {
            name: Var("hint", UINT64, self.context.unique("hint"))
            for name in reuse(self.launch, plan.bulk, plan.info)
        }
        if self.teams is not None and not self.loops:
            raise InternalError("a launch with a front has no loop for it", self.launch.span)
        self.copies_ahead = any(COPY in s.streams for s in self.schedules.values())
        self.rings = {
            t.buffer: s.depth[t.name]
            for s in self.schedules.values()
            for t in s.body.storage
            if t.filled and t.buffer is not None
        }
        self.absorbed = {
            id(s): tuple(fresh_fills(self.launch.body, s, self.on_engine_now)) for s in self.loops.values()
        }
        self.sizes: dict[Buffer, int] = {}
        self.leads = Leads(
            self.context,
            self.launch,
            plan.leads if self.copies_ahead else {},
            self.walk.turn,
            self.walk.repeats,
            self.on_engine_now,
            self.readers_of,
        )
        self.rings |= self.leads.depth
        for storage in self.rings:
            self.sizes[storage] = slot_size(self.context, storage)
        self.leads.deepen(self.sizes, self.spare() - self.groups * STAGING)
        self.rings |= self.leads.depth
        self.context.depths.update(self.rings)
        for storage in self.rings:
            tile(self.context, storage)
        self.context.slots = dict(self.lead_slots)
        named = [(loop, t) for loop, s in self.schedules.items() for t in s.tokens.values()]
        self.arriving = {
            (name, token): found
            for name, s in self.schedules.items()
            if self.teams is not None
            for token, found in arriving(plan, s, self.ops(name), self.shared_copies).items()
        }
        more = {"finished": self.groups, "memory": 0} if self.sums_apart else {}
        tokens = (*named, *self.leads.tokens())
        self.signals = Signals(self.context, engines, tokens, self.arrivals, self.parts, more)
        self.turns = Turns(
            self.context, engines, self.group, self.groups, rules.group, GROUP_BARRIERS + self.groups
        )
        self.stores = BoxStore(self.context, self.own, self.group, self.box, self.spare(), self.freed(OWN))
        only = Var("only", INT32, self.context.unique("only"))
        self.context.ranges[only] = Interval(0, 0)
        self.front_stores = BoxStore(self.context, self.front, only, self.box, 0, self.freed(FRONT))
        self.sums = self._sums()

    def _front(self) -> Team:
        """The second team; it has no threads where all do the same."""
        thread = Var("front", INT32, self.context.unique("front"))
        threads = self.launch.front.threads if self.launch.front else 0
        self.context.ranges[thread] = Interval(0, max(0, threads - 1))
        return Team(FRONT, thread, threads, FRONT_BARRIER)

    @property
    def sums_apart(self) -> bool:
        """Whether the matrix engine keeps sums in memory of its own."""
        return self.context.instructions.sums is not None and has_products(self.context, self.launch)

    def _sums(self) -> Sums | None:
        memory, meet = self.context.instructions.sums, self.stores.meet
        if memory is None or not self.sums_apart:
            return None
        given = self.context, self.launch, self.engines, memory, self.signals
        return Sums(*given, self.group, self.groups, meet)

    @property
    def lead_slots(self) -> dict[Buffer, Expr]:
        """Where the slots of this turn begin."""
        return {b: self.ring(b, self.walk.turn)[1] for b, n in self.leads.depth.items() if n > 1}

    @property
    def reusing(self) -> bool:
        """Whether results on their way out are staged in tiles that the loop used: nothing is copied to these behind it."""
        return self.teams is not None and not self.walk.repeats

    def freed(self, stream: str) -> tuple[Buffer, ...]:
        """Tiles of the loop that a team may use behind it."""
        rings = [b for b in self.rings if b not in self.leads.depth] if self.reusing else []
        return tuple(rings[0::2] if stream == OWN else rings[1::2])

    @property
    def team_stores(self) -> BoxStore:
        return self.stores if self.context.team is self.own else self.front_stores

    def spare(self) -> int:
        """Bytes of shared memory that no tile of the user and no ring takes."""
        space = self.context.plan.info.space("shared")
        used = sum(n * self.rings[b] * b.dtype.bits // 8 for b, n in self.sizes.items())
        for b, layout in self.context.plan.layouts.items():
            if b.space is Space.SHARED and b not in self.rings:
                used += layout.footprint() * b.dtype.bits // 8
        return (space.capacity if space else 0) // self.resident - used - RESERVED

    # The launch.

    def run(self) -> Launch:
        """The whole launch: tokens are set up, then each role goes its way."""
        if not self.copies_ahead:
            return self.alone()
        mine, ahead = self.own_roles(), self.copy_role()
        thread = self.context.thread
        body = (
            *(self.walk.deal.tables() if self.walk.deal else ()),
            self.engines.uniform(binary("//", thread, self.rules.group), self.group),
            If(binary("==", thread, 0), self.signals.prepare()),
            *(self.sums.reserve() if self.sums else ()),
            self.engines.meet() if self.sharing else Sync(),
            If(binary("==", self.group, self.groups), ahead, mine),
            *(self.sums.release() if self.sums else ()),
            # a block must not end while others still write into its shared memory or arrive at its tokens
            *((self.engines.meet(),) if self.sharing else ()),
        )
        return replace(
            self.launch,
            vars=self.walk.vars,
            grid=self.walk.grid,
            threads=(self.context.threads + self.rules.group + self.front.threads,),
            front=None,
            thread_vars=(thread,),
            body=body,
            layouts=(),
            swizzle=None,
        )

    def alone(self) -> Launch:
        """The launch where no copy runs ahead: the user's threads do it all, and only products are asynchronous."""
        thread, group = self.context.thread, self.rules.group
        if self.teams is not None:
            raise InternalError("a front without copies that run ahead", self.launch.span)
        body = (self.engines.uniform(binary("//", thread, group), self.group), *self.own_roles())
        if self.sums:
            tokens = If(binary("==", thread, 0), self.signals.prepare())
            body = (body[0], tokens, *self.sums.reserve(), Sync(), *body[1:], *self.sums.release())
        return replace(
            self.launch,
            vars=self.walk.vars,
            grid=self.walk.grid,
            threads=(self.context.threads,),
            thread_vars=(thread,),
            body=body,
            layouts=(),
            swizzle=None,
        )

    def quota(self, stream: str) -> tuple[Stmt, ...]:
        """Registers move from the threads that copy to those that compute, if these could use them."""
        if not self.copies_ahead:
            return ()
        if self.teams is not None:
            found = quotas.apart(self.groups, self.rules.group, self.resident)
            mine = found[(COPY, OWN, FRONT).index(stream)]
            first = quotas.at_first(self.groups + 2, self.rules.group, self.resident)
            return (self.engines.registers(mine, mine > first),)
        shares = quotas.alike(self.groups, self.rules.group, self.resident)
        if shares is None:
            return ()
        return (self.engines.registers(shares[stream != COPY], stream != COPY),)

    def own_roles(self) -> tuple[Stmt, ...]:
        """What the user's threads do, and the front where there is one."""
        body = self.lowered()
        with self.context.working_as(self.front):
            front = self.lowered() if self.teams else ()
        # nothing in a tile outlives the work on one tile of the grid
        self.places = placed_tiles(self.context, (*body, *front), self.resident, apart=bool(front))
        mine = self.own_role(body)
        if self.teams is None:
            return mine
        first = self.launch.thread_count + self.rules.group
        with self.context.working_as(self.front):
            thread = Bind(self.front.thread, binary("-", self.own.thread, first))
            only = Bind(self.front_stores.group, const(0))
            front = (thread, only, *self.own_role(front))
        return (If(binary("==", self.group, self.groups + 1), front, mine),)

    def lowered(self) -> tuple[Stmt, ...]:
        """The statements of a team for one tile of the grid."""
        return tuple(t for s in self.launch.body if self.concerns(s) for t in self.own_statement(s))

    def concerns(self, s: Stmt) -> bool:
        """Whether the present team does something for a statement of the launch's body."""
        if self.teams is None or isinstance(s, Alloc | Bind | For):
            return True
        return self.context.team.stream in self.teams.of_statement(s)

    def own_role(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        stream = self.context.team.stream
        apart = {self.context.tiles[b] for b in self.rings | dict.fromkeys(self.handed_over)}
        pending = Pending(
            self.places.sharing, frozenset(apart | {self.signals.words} | set(self.team_stores.staged))
        )
        around = self.walk.around(body)
        body = synchronised(around, pending, self.context.meet())
        after = self.context.instructions.succession
        in_turn = any(any(loop.in_turn) for loop in self.role_loops())
        return (
            *self.quota(stream),
            *(self.sums.start() if self.sums else ()),
            *self.start_counters(stream),
            *(self.turns.start() if in_turn else ()),
            *leaving(after, waiting(after, body)),
            *self.drained(stream),
            *(self.turns.finish() if in_turn else ()),
            *self.team_stores.finish(),
        )

    @cached_property
    def handed_over(self) -> frozenset[Buffer]:
        """Tiles that one team writes and the other reads."""
        if self.teams is None:
            return frozenset()
        return self.teams.handed_over

    def own_statement(self, s: Stmt) -> Iterator[Stmt]:
        """A statement of the launch as a team runs it, and that it has read tiles filled ahead."""
        tiles = self.teams.handed_over if self.teams and not isinstance(s, For) else frozenset[Buffer]()
        gives, takes = bool(tiles & written(s)), bool(tiles & read(s))
        if (gives or takes) and self.walk.repeats:
            yield self.both_meet()  # what was handed over in the turn before has been read
        if takes:
            yield self.both_meet()
        yield from self.lower((s,))
        if gives or (self.reusing and isinstance(s, For)):
            yield self.both_meet()
        for lead in self.leads.copies.values():
            if s is self.leads.last(lead) and self.concerns(lead) and not self.read_early(lead):
                yield from self.leads.released(lead, self.signals)

    def both_meet(self) -> Stmt:
        return Sync(TEAMS_BARRIER, self.own.threads + self.front.threads)

    def copy_role(self) -> tuple[Stmt, ...]:
        body = tuple(t for s in self.launch.body for t in self.copying(s))
        chosen = Var("chosen", BOOL, self.context.unique("chosen"))
        again = reuse(self.launch, self.context.plan.bulk, self.context.plan.info)
        hints = tuple(self.engines.keep(again[name], v) for name, v in self.hints.items())
        copies = waiting(self.context.instructions.succession, self.walk.around(body))
        work = If(chosen, (*hints, *self.start_counters(COPY), *copies, *self.drained(COPY)))
        first = self.context.threads + self.context.plan.info.subgroup
        return (
            *self.quota(COPY),
            If(binary("<", self.context.thread, first), (self.engines.elected(chosen), work)),
        )

    def read_early(self, lead: Copy) -> bool:
        """Whether a loop tells that it has read a lead's tile."""
        return any(lead is found for loop in self.role_loops() for found in loop.read_early())

    def role_loops(self) -> list[RoleLoop]:
        """The scheduled loops as the user's threads run them."""
        stream = self.context.team.stream
        return [RoleLoop(self, n, s, self.schedules[n], stream, None) for n, s in self.loops.items()]

    def fill_lead(self, s: Copy) -> Iterator[Stmt]:
        """Start the boxes of a tile that is filled once for each tile of the grid."""
        found = self.context.plan.leads[self.leads.name(s)]
        yield from self.leads.free(s, self.signals)
        token = self.leads.filling(s, self.signals)
        yield self.engines.expect(token, found.bytes)
        flat, slot = self.ring(s.dst.buffer.storage, self.walk.turn)
        for piece in found.pieces:
            at = [
                self.context.simple(binary("+", x, n)) for x, n in zip(found.start, piece.shift, strict=True)
            ]
            inside = self.context.simple(binary("+", slot, piece.at))
            yield self.engines.load(self.box(found), at, Place(flat, (inside,), "w", window=True), token)

    def copying(self, s: Stmt) -> Iterator[Stmt]:
        """The part of ``s`` that starts copies: loops and branches around them, and scalars that these need."""
        match s:
            case Copy() if id(s) in self.leads.copies:
                yield from self.fill_lead(s)
            case For() if id(s) in self.names:
                if COPY in self.schedules[self.names[id(s)]].streams:
                    yield from self.steps(s, COPY)
            case For() if self.contains(s):
                yield replace(s, body=tuple(t for u in s.body for t in self.copying(u)), kind="serial")
            case If() if self.contains(s):
                then, other = (tuple(t for u in part for t in self.copying(u)) for part in (s.then, s.other))
                yield replace(s, then=then, other=other)
            case Bind():
                yield s
            case _:
                return

    def contains(self, s: Stmt) -> bool:
        return any(id(t) in self.names for t in statements((s,)))

    def statement(self, s: Stmt) -> Iterator[Stmt] | None:
        """What the user's threads do for a statement that this split changes; None for all others."""
        match s:
            case For() if id(s) in self.names:
                return self.own_loop(s)
            case Fill() if is_zero(s) and self.accumulates(s.dst.buffer):
                absorbed = any(s is fill for found in self.absorbed.values() for fill in found)
                return iter(() if absorbed else (zero(self.context, self.engines, s.dst.buffer),))
            case Gemm() if self.on_engine_now(s):
                return self.product_at_once(s)
            case Copy() if id(s) in self.leads.copies:
                return self.leads.wait(s, self.signals)
            case Copy():
                stored = self.team_stores.store(s)
                if stored is not None:
                    return iter(stored)
                groups = self.context.threads // self.rules.group
                matrices = matrix_store(self.context, self.engines, s, self.team_group, groups)
                # one branch: no barriers between its parts
                return None if matrices is None else iter((If(const(True), tuple(matrices)),))
            case _:
                return None

    def accumulates(self, c: Buffer) -> bool:
        return any(
            isinstance(n.stmt, Gemm) and n.stmt.c.buffer == c and self.on_engine(n.name)
            for n in self.context.plan.graph.nodes
        )

    def on_engine(self, op: str) -> bool:
        """Whether a gemm is the matrix engine's."""
        return op in self.context.plan.engines and op not in self.context.plan.bulk

    def on_engine_now(self, s: Gemm) -> bool:
        return self.on_engine(self.context.name_of(s))

    def product_at_once(self, s: Gemm) -> Iterator[Stmt]:
        """A product outside the steps of a scheduled loop: the threads wait for it."""
        op = self.context.name_of(s)
        c, sums = s.c.buffer.storage, self.sums
        if sums and not s.clear:
            yield from sums.put(c)
        shared = {x.storage for x in (s.a.buffer, s.b.buffer) if x.space is Space.SHARED}
        if shared - self.rings.keys() or sums:
            yield self.engines.visible()
            yield self.context.meet()
        if sums and not s.clear:
            yield sums.memory.after()
        yield from self.multiply(op, s, const(0 if s.clear else 1))
        if sums:
            yield from sums.finished()
            yield from sums.fetched(c)
        else:
            yield self.engines.settle("tensor", 0)
            yield hold(self.context, self.engines, c)

    def multiply(
        self, op: str, s: Gemm, accumulate: Expr, arriving: Mapping[int, tuple[Stmt, ...]] | None = None
    ) -> Iterator[Stmt]:
        """Start the products of a gemm: each group its own. ``arriving`` as in the engine's task."""
        at = self.sums.at(s.c.buffer.storage) if self.sums else None
        started = self.engines.multiply(
            product(self.context, op, s, self.team_group, accumulate, at, arriving)
        )
        yield from (self.sums.leader(*started),) if self.sums else started

    # Loops.

    def own_loop(self, s: For) -> Iterator[Stmt]:
        """The loop; where it may have no iteration, accumulators that its first product would begin are set to zero."""
        fresh = self.fresh(s) if self.context.team is self.own else ()
        if fresh and not (isinstance(s.extent, int) and s.extent > 0):
            yield If(binary("<=", s.extent, 0), tuple(zero(self.context, self.engines, c) for c in fresh))
        yield from self.steps(s, self.context.team.stream)

    def fresh(self, loop: For) -> tuple[Buffer, ...]:
        """Accumulators that the first product of a loop begins."""
        return tuple(dict.fromkeys(fill.dst.buffer for fill in self.absorbed[id(loop)]))

    def steps(self, s: For, stream: str) -> Iterator[Stmt]:
        name = self.names[id(s)]
        yield from RoleLoop(
            self, name, s, self.schedules[name], stream, self.counter(name, stream)
        ).statements()

    def drained(self, stream: str) -> Iterator[Stmt]:
        """At the end of a role: what the matrix engine still has to tell it of loops that run several times."""
        for (name, of), counter in self.counters.items():
            if of == stream:
                loop = RoleLoop(self, name, self.loops[name], self.schedules[name], stream, counter)
                yield from loop.drained(Load(counter, ()))

    def counter(self, name: str, stream: str) -> Buffer | None:
        """Counts iterations on over all runs of a loop; None if it runs once in a block."""
        nested = any(
            isinstance(t, For) and id(t) not in self.names and self.contains(t)
            for t in statements(self.launch.body)
        )
        if not self.walk.repeats and not nested:
            return None
        key = (name, stream)
        if key not in self.counters:
            done = f"{name}_done"
            self.counters[key] = Buffer(done, (), INT32, Space.VAR, number=self.context.unique(done))
        return self.counters[key]

    def start_counters(self, stream: str) -> tuple[Stmt, ...]:
        own = [c for (_, of), c in self.counters.items() if of == stream]
        return tuple(s for c in own for s in (Alloc(c), Store(c, (), const(0))))

    def ops(self, loop: str) -> dict[str, Stmt]:
        """The statement of each op of a scheduled loop."""
        graph = self.context.plan.graph
        return {
            graph.names.get(id(s)) or graph.region_of(s): s
            for s in self.loops[loop].body
            if not isinstance(s, Bind | Alloc)
        }

    @property
    def shared_copies(self) -> frozenset[str]:
        """Copies that several blocks take part in."""
        return frozenset(self.sharing.copies) if self.sharing else frozenset()

    def parts(self, loop: str, token: Token) -> int:
        """How many words tell of one instance of a token."""
        found = self.arriving.get((loop, token.name))
        return found.parts if found else 1

    def arrivals(self, loop: str, token: Token) -> int:
        """Copies arrive once, with their bytes; the end of an engine's work in each group; what threads do in each subgroup."""
        if loop == LEAD:
            return self.leads.arrivals(token)
        copies = [p for p in token.producers if p in self.context.plan.bulk]
        own = [p for p in token.producers if p not in self.context.plan.bulk]
        many = self.sharing.blocks if self.releases_shared(loop, token) and self.sharing else 1
        once = {p for p in own if self.told_once(loop, token, p)}
        threads = (self.threads_of(self.schedules[loop].ops[p].stream) for p in own)
        each = (
            n // (self.rules.group if p in once else self.context.plan.info.subgroup)
            for n, p in zip(threads, own, strict=True)
        )
        return bool(copies) + many * sum(each)

    def told_once(self, loop: str, token: Token, op: str) -> bool:
        """Whether one thread of each group arrives for an op: an engine's end, by which nobody learns what threads have done."""
        return self.signals_itself(op) or self.schedules[loop].told_once(token, op)

    def readers_of(self, lead: Copy) -> int:
        """Threads of the teams that read a tile filled outside of loops."""
        return self.teams.threads(self.teams.of_statement(lead)) if self.teams else self.own.threads

    def threads_of(self, stream: str) -> int:
        return self.front.threads if stream == FRONT else self.own.threads

    @property
    def group_barrier(self) -> Expr:
        """The number of the barrier of this thread's group."""
        return self.team_stores.number

    @property
    def team_group(self) -> Expr:
        """This thread's group in its team."""
        return self.group if self.context.team is self.own or self.teams is None else const(0)

    def signals_itself(self, op: str) -> bool:
        """Whether the matrix engine arrives at tokens when it has done an op."""
        return self.sums is not None and self.on_engine(op)

    def releases_shared(self, loop: str, token: Token) -> bool:
        """Whether copies that other blocks take part in wait for this token: then all of these blocks arrive."""
        if self.sharing is None:
            return False
        waiting = {
            step.op
            for step in self.schedules[loop].streams[COPY]
            if any(w.token == token.name for w in step.waits)
        }
        # one stream: what stands behind a wait waits as well
        order = [step.op for step in self.schedules[loop].streams[COPY]]
        first = min((order.index(op) for op in waiting), default=len(order))
        return any(op in self.sharing.copies for op in order[first:])

    def ring(self, storage: Buffer, instance: Expr) -> tuple[Buffer, Expr]:
        """(the memory of a ring, where the slot of an instance begins)."""
        slot = binary("truncmod", instance, self.rings[storage])
        return self.context.tiles[storage], binary("*", slot, self.sizes[storage])

    def box(self, found: BoxCopy, parts: int = 1) -> Var:
        """The parameter that describes a tensor to the copy engine; ``parts``: how many blocks share the rows of a box."""
        self.conditions.update(dict.fromkeys(found.conditions))
        box = list(found.box)
        if found.rows is not None:
            box[found.rows] //= parts
        key = BoxMap(found.tensor, tuple(box), found.span)
        if key not in self.maps:
            name = f"{found.tensor.name}_box"
            self.maps[key] = Var(name, HANDLE, self.context.unique(name))
        return self.maps[key]
