"""Launches whose copies run ahead in a subgroup of their own: what each role does, and how the roles tell each other.

One more group of threads is added to the block. One of its threads starts the copies of all scheduled loops, the user's own threads
do the rest; both walk the same loops, and wait for each other's tokens only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ...dtypes import HANDLE, INT32, UINT64
from ...errors import InternalError
from ...expr import Buffer, Expr, Load, Var, binary, const
from ...expr.intervals import Interval
from ...inference import quotas
from ...inference.adding import staging
from ...inference.bulk import BoxCopy
from ...inference.schedule.pressure import pressure
from ...inference.schedule.program import Schedule
from ...inference.teams import FRONT, OWN
from ...program import AtomicTile, Bind, Copy, Fill, For, Gemm, If, Launch, Stmt, Sync
from ...program.visit import statements
from .adder import Adder
from .arena import Arena, placed_tiles
from .arriving import arriving
from .barriers import Pending, synchronised
from .box_add import box_add
from .box_store import GROUP_BARRIERS, BoxStore
from .boxes import BoxMap
from .context import Context
from .copy_role import CopyRole
from .counters import Counters
from .crew import Crew
from .engine_gemm import zero
from .following import leaving, waiting
from .leads import Leads
from .matrix_store import matrix_store
from .persistent import Walk
from .places import slot_size, tile
from .products import Products
from .residency import resident, spare, tile_bytes
from .reuse import reuse
from .role_loop import RoleLoop
from .role_split import fresh_fills, has_products, is_zero, ops_of, walkable
from .signals import Signals
from .sums import Sums
from .telling import COPY, Telling
from .turns import Turns
from .ways import way

RESERVED = 2048  # bytes of shared memory: tokens, and what alignment costs
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
        used += staging(context.plan.graph, context.plan.adds, launch)
        blocks = resident(context.plan, launch, copying, used)
        return Roles(
            context, launch, lower, loops, way(context, launch, tuple(loops.values()), ahead, blocks), blocks
        )

    def __post_init__(self) -> None:
        plan, engines, rules = self.context.plan, self.context.instructions.bulk, self.context.plan.info.bulk
        assert engines is not None and rules is not None
        self.engines, self.rules = engines, rules
        self.places = Arena({}, {}, 0)
        self.sharing = self.walk.sharing
        self.crew = Crew(self.context, self.launch, rules, self.walk.repeats)
        self.groups = self.crew.groups
        self.own, self.front, self.teams = self.crew.own, self.crew.front, self.crew.teams
        self.group = Var("group", INT32, self.context.unique("group"))
        self.context.ranges[self.group] = Interval(0, self.groups - 1)
        self.names = {id(s): name for name, s in self.loops.items()}
        self.counters = Counters(
            self.context, self.launch, self.walk.repeats, lambda s: id(s) in self.names, self.contains
        )
        self.schedules: dict[str, Schedule] = {name: plan.schedules[name] for name in self.loops}
        self.again = reuse(self.launch, plan.bulk, plan.info)
        kinds = sorted(set(self.again.values()))
        self.hints = {kind: Var("hint", UINT64, self.context.unique("hint")) for kind in kinds}
        if self.teams is not None and not self.loops:
            raise InternalError("a launch with a front has no loop for it", self.launch.span)
        self.copies_ahead = any(COPY in s.streams for s in self.schedules.values())
        self.absorbed = {
            id(s): tuple(fresh_fills(self.launch.body, s, self.on_engine_now)) for s in self.loops.values()
        }
        self._tiles()
        self._tokens()
        self._results()
        self.sums = self._sums()

    def _tiles(self) -> None:
        """The tiles that are filled ahead, with all slots."""
        self.rings = {
            t.buffer: s.depth[t.name]
            for s in self.schedules.values()
            for t in s.body.storage
            if t.filled and t.buffer is not None
        }
        self.sizes: dict[Buffer, int] = {}
        self.leads = Leads(
            self.context,
            self.launch,
            self.context.plan.leads if self.copies_ahead else {},
            self.walk.turn,
            self.walk.repeats,
            self.on_engine_now,
            self.crew.readers_of,
        )
        self.rings |= self.leads.depth
        for storage in self.rings:
            self.sizes[storage] = slot_size(self.context, storage)
        self.leads.deepen(self.sizes, self._spare() - self.groups * STAGING)
        self.rings |= self.leads.depth
        self.context.depths.update(self.rings)
        for storage in self.rings:
            tile(self.context, storage)
        self.context.slots = {
            b: self.ring(b, self.walk.turn)[1] for b, n in self.leads.depth.items() if n > 1
        }

    def _tokens(self) -> None:
        """Who tells whom."""
        plan, group = self.context.plan, self.rules.group
        named = [(loop, t) for loop, s in self.schedules.items() for t in s.tokens.values()]
        kept = frozenset(self.sharing.copies if self.sharing else ())  # several blocks take part in these
        self.arriving = {
            (name, token): found
            for name, s in self.schedules.items()
            if self.teams is not None
            for token, found in arriving(plan, s, ops_of(self.context, self.loops[name]), kept).items()
        }
        adding = self.loops if self.copies_ahead and self.sharing is None else {}
        self.adder = Adder.of(self.context, self.engines, self.launch, adding, self.groups, group)
        more = {"finished": self.groups, "memory": 0} if self.sums_apart else {}
        more |= self.adder.words
        tokens = (*named, *self.leads.tokens())
        self.telling = Telling(
            self.context,
            self.schedules,
            self.leads,
            self.sharing,
            group,
            self.arriving,
            self.crew.threads_of,
            self.signals_itself,
        )
        self.signals = Signals(
            self.context, self.engines, tokens, self.telling.arrivals, self.telling.parts, more
        )
        self.adder.signals = self.signals
        turn_barriers = GROUP_BARRIERS + self.groups
        self.turns = Turns(self.context, self.engines, self.group, self.groups, group, turn_barriers)

    def _results(self) -> None:
        """How each team's results leave."""
        lasting = [b for b in self.rings if b not in self.leads.depth]
        self.stores = BoxStore(
            self.context, self.own, self.group, self.box, self._spare(), self.crew.freed(lasting, OWN)
        )
        only = Var("only", INT32, self.context.unique("only"))
        self.context.ranges[only] = Interval(0, 0)
        self.front_stores = BoxStore(
            self.context, self.front, only, self.box, 0, self.crew.freed(lasting, FRONT)
        )

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
    def team_stores(self) -> BoxStore:
        return self.stores if self.context.team is self.own else self.front_stores

    def _spare(self) -> int:
        """Bytes of shared memory that are left."""
        used = staging(self.context.plan.graph, self.context.plan.adds, self.launch) + RESERVED
        return spare(self.context.plan, self.rings, self.sizes, self.resident) - used

    def run(self) -> Launch:
        """The whole launch: tokens are set up, then each role goes its way."""
        if not self.copies_ahead:
            return self.alone()
        mine, ahead = self.own_roles(), CopyRole(self).statements()
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
        return self._made(body, self.context.threads + self.rules.group + self.front.threads)

    def _made(self, body: tuple[Stmt, ...], threads: int) -> Launch:
        return replace(
            self.launch,
            vars=self.walk.vars,
            grid=self.walk.grid,
            threads=(threads,),
            front=None,
            thread_vars=(self.context.thread,),
            body=body,
            layouts=(),
            swizzle=None,
        )

    def alone(self) -> Launch:
        """The launch where no copy runs ahead: the user's threads do it all, and only products are asynchronous."""
        if self.teams is not None:
            raise InternalError("a front without copies that run ahead", self.launch.span)
        thread = self.context.thread
        body = (self.engines.uniform(binary("//", thread, self.rules.group), self.group), *self.own_roles())
        if self.sums:
            tokens = If(binary("==", thread, 0), self.signals.prepare())
            body = (body[0], tokens, *self.sums.reserve(), Sync(), *body[1:], *self.sums.release())
        return self._made(body, self.context.threads)

    def quota(self, stream: str) -> tuple[Stmt, ...]:
        """Registers of a role, where there are several."""
        if not self.copies_ahead:
            return ()
        return self.crew.quota(stream, self.engines, self.resident, self.needed)

    @cached_property
    def needed(self) -> int:
        """Registers that the tiles of one of the user's threads take at once."""
        own = (s for s in self.schedules.values() if OWN in s.streams)
        return max((pressure(s.body, s.times, OWN) for s in own), default=0)

    @property
    def scarce(self) -> bool:
        """Whether threads that compute need registers of those that copy."""
        return quotas.scarce(self.groups, self.rules.group, self.resident, self.needed)

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
        return tuple(t for s in self.launch.body if self.crew.concerns(s) for t in self.own_statement(s))

    def own_role(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        stream = self.context.team.stream
        apart = {self.context.tiles[b] for b in self.rings | dict.fromkeys(self.crew.handed_over)}
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
            *self.counters.start(stream),
            *(self.turns.start() if in_turn else ()),
            *leaving(after, waiting(after, body)),
            *self.drained(stream),
            *(self.turns.finish() if in_turn else ()),
            *self.team_stores.finish(),
        )

    def own_statement(self, s: Stmt) -> Iterator[Stmt]:
        """A statement of the launch as a team runs it, and that it has read tiles filled ahead."""
        yield from self.crew.met(s, self.lower((s,)))
        for lead in self.leads.copies.values():
            if s is self.leads.last(lead) and self.crew.concerns(lead) and not self.read_early(lead):
                yield from self.leads.released(lead, self.signals)

    def read_early(self, lead: Copy) -> bool:
        """Whether a loop tells that it has read a lead's tile."""
        return any(lead is found for loop in self.role_loops() for found in loop.read_early())

    def role_loops(self) -> list[RoleLoop]:
        """The scheduled loops as the user's threads run them."""
        stream = self.context.team.stream
        return [RoleLoop(self, n, s, self.schedules[n], stream, None) for n, s in self.loops.items()]

    def contains(self, s: Stmt) -> bool:
        return any(id(t) in self.names for t in statements((s,)))

    def statement(self, s: Stmt) -> Iterator[Stmt] | None:
        """What the user's threads do for a statement that this split changes; None for all others."""
        match s:
            case For() if id(s) in self.names:
                return self.own_loop(s)
            case Fill() if is_zero(s) and Products(self).accumulate_in(s.dst.buffer):
                absorbed = any(s is fill for found in self.absorbed.values() for fill in found)
                return iter(() if absorbed else (zero(self.context, self.engines, s.dst.buffer),))
            case Gemm() if self.on_engine_now(s):
                return Products(self).at_once(s)
            case AtomicTile():
                return box_add(self.team_stores, s, self.adder)
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

    def on_engine(self, op: str) -> bool:
        """Whether a gemm is the matrix engine's."""
        return op in self.context.plan.engines and op not in self.context.plan.bulk

    def on_engine_now(self, s: Gemm) -> bool:
        return self.on_engine(self.context.name_of(s))

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
            self, name, s, self.schedules[name], stream, self.counters.of(name, stream)
        ).statements()

    def drained(self, stream: str) -> Iterator[Stmt]:
        """At the end of a role: what the matrix engine still has to tell it of loops that run several times."""
        for name, counter in self.counters.by_loop(stream):
            loop = RoleLoop(self, name, self.loops[name], self.schedules[name], stream, counter)
            yield from loop.drained(Load(counter, ()))

    @property
    def team_group(self) -> Expr:
        """This thread's group in its team."""
        return self.group if self.context.team is self.own or self.teams is None else const(0)

    def signals_itself(self, op: str) -> bool:
        """Whether the matrix engine arrives at tokens when it has done an op."""
        return self.sums is not None and self.on_engine(op)

    def ring(self, storage: Buffer, instance: Expr) -> tuple[Buffer, Expr]:
        """(the memory of a ring, where the slot of an instance begins)."""
        slot = binary("truncmod", instance, self.rings[storage])
        return self.context.tiles[storage], binary("*", slot, self.sizes[storage])

    def box(self, found: BoxCopy, parts: int = 1, passing: bool = False) -> Var:
        """The parameter that describes a tensor to the copy engine; ``parts``: how many blocks share the rows of a box.

        ``passing`` as in ``BoxMap``.
        """
        self.conditions.update(dict.fromkeys(found.conditions))
        box = list(found.box)
        if found.rows is not None:
            box[found.rows] //= parts
        key = BoxMap(found.tensor, tuple(box), found.span, passing)
        if key not in self.maps:
            name = f"{found.tensor.name}_box"
            self.maps[key] = Var(name, HANDLE, self.context.unique(name))
        return self.maps[key]
