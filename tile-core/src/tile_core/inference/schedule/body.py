"""From a loop region of the graph to the body that is scheduled: its ops, tiles, streams and dependences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil

from ...errors import InternalError
from ...expr import Buffer, Space
from ...expr.affine import linear
from ...graph import Edge
from ...hardware import TargetInfo
from ...layout.layout import Axis, Layout
from ...program import AtomicTile, Copy, Gemm
from ..adding import BoxAdd
from ..bulk import BoxCopy
from ..model import GemmChoice
from ..quotas import for_tiles
from ..teams import FRONT, OWN, Teams
from .arriving import panels
from .costs import Cost, Rates, size
from .dependences import unique
from .engines import COPY, WARPS, asynchronous
from .model import ORDER, REGISTER, SIGNAL, Body, Dep, Op, Read, Storage, Stream, Unit
from .pins import Pins
from .region import LoopRegion
from .rescaling import seldom

MAIN = OWN
GROUPS = {n: count for n, count in WARPS.items() if count > 1}  # issuers of several subgroups
DEEPEST = 8  # slots of a ring whose depth nobody pinned
RELAY = 16  # clocks to see a count and to arrive
SHORT = 100  # clocks of an op that mostly waits for itself
LONE = 2  # how many times longer a team takes than its instructions, as no other one fills its waits (H200)
ASKED = 40  # clocks until all threads of a subgroup know whether one of them has something to do


@dataclass(frozen=True)
class Facts:
    """What inference knows when a loop is scheduled. ``engine_of``: asynchronous engine by node name.

    ``bulk``: the boxes of copies. ``teams``: who does what, if not all do the same. ``adds``: sums that threads only stage.
    """

    info: TargetInfo
    atoms: Mapping[str, GemmChoice]
    layouts: Mapping[Buffer, Layout]
    engine_of: Mapping[str, str]
    threads: int
    bulk: Mapping[str, BoxCopy] = field(default_factory=dict[str, BoxCopy])
    teams: Teams | None = None
    adds: Mapping[str, BoxAdd] = field(default_factory=dict[str, BoxAdd])

    def bytes(self, b: Buffer) -> int:
        """Bytes of a tile with its padding."""
        layout = self.layouts.get(b)
        if layout is None or b.space is not Space.SHARED:
            return size(b)
        return -(-layout.footprint(Axis.MEMORY) * b.dtype.bits // 8)


@dataclass(frozen=True)
class Reader:
    """Reads one loop. ``pin``: slots that the user wants of each ring that a copy fills; None leaves it open.

    ``pins``: the stages and the order that the user wants.
    """

    region: LoopRegion
    facts: Facts
    pin: int | None = None
    pins: Pins | None = None

    def body(self, capacity: int) -> Body:
        """The body. ``capacity``: bytes of shared memory for the tiles that the loop writes."""
        ops = tuple(self._ops())
        info = self.facts.info
        shared = self.facts.threads > info.subgroup
        streams = [Stream(MAIN, self.facts.threads, cooperative=shared, budget=self._budget())]
        if self.facts.teams:
            threads = self.facts.teams.threads(frozenset({FRONT}))
            streams.append(Stream(FRONT, threads, cooperative=threads > info.subgroup))
        if any(o.stream == COPY for o in ops):
            streams.append(Stream(COPY))
        units = tuple(
            Unit(e.name, e.observed, e.shared, e.in_order, info.subgroup * GROUPS.get(e.issued_by, 0))
            for e in info.engines
        )
        return Body(
            self.region.loop.name,
            units,
            tuple(streams),
            tuple(self.storage.values()),
            ops,
            {str(Space.SHARED): capacity},
            max((e.signal for e in info.engines), default=0),
            RELAY,
            self.region.everywhere,
            self._trips(),
        )

    def _trips(self) -> int:
        """How many iterations it takes at most to walk along a tensor."""
        k = self.region.stmt.var
        found = [
            ceil(extent / steps)
            for op in self.region.ops
            if (boxes := self.facts.bulk.get(op)) is not None
            for x, extent in zip(boxes.start, boxes.tensor.shape, strict=True)
            if k is not None and isinstance(extent, int) and (steps := linear(x).terms.get(k, 0)) > 0
        ]
        return min(found, default=0)

    def _budget(self) -> int:
        """Registers for the tiles of a thread where others that only copy leave it theirs."""
        rules = self.facts.info.bulk
        if rules is None or self.facts.teams is not None or self.facts.threads % rules.group:
            return 0
        return for_tiles(self.facts.threads // rules.group, rules.group)

    def deps(self) -> tuple[Dep, ...]:
        """What memory demands.

        Raises:
            InternalError: a value in registers would have to go from one stream to another.
        """
        found = [self._early(self._loose(self._dep(u, v, e))) for u, v, e in self.region.edges]
        found += self._restarted()
        for d in found:
            if self._stream(d.u) != self._stream(d.v) and self.storage[d.storage].space == REGISTER:
                raise InternalError(f"{d}: the ops are in different streams, the tile is in registers")
        return unique(found)

    def _restarted(self) -> Iterator[Dep]:
        """An engine that ends its ops in any order does one instance after the other where their tile is no ring."""
        for op, nodes in self.region.ops.items():
            engine = self._engine(op)
            if engine and not asynchronous(self.facts.info)[engine].in_order:
                for b in nodes[0].writes:
                    if self.storage[self.names[b]].carried:
                        yield Dep(op, op, 1, "WAW", self.names[b])

    def _dep(self, u: str, v: str, e: Edge) -> Dep:
        assert isinstance(e.buffer, Buffer), e
        name = self.names[e.buffer]
        ring = e.carried and e.kind != "raw" and not self.storage[name].carried
        distance = 1 if e.carried and not ring else 0
        return Dep(u, v, distance, e.kind.upper(), name, ring, self._chained(u, v, e.buffer))

    def _loose(self, d: Dep) -> Dep:
        """A dependence of an op that waits for products itself, if it has to."""
        product = isinstance(self.region.statement(d.u), Gemm) and self._engine(d.u)
        return replace(d, kind=ORDER, queued=True) if d.v in self.seldom and product else d

    def _early(self, d: Dep) -> Dep:
        """A dependence of a product that begins when the first part of a tile is there."""
        if self.facts.teams is None or d.kind != "RAW" or self._engine(d.u) != COPY or not self._engine(d.v):
            return d
        u, v = self.region.statement(d.u), self.region.statement(d.v)
        parts = panels(u, self.facts.bulk.get(d.u), v)
        return replace(d, early=self._cost(d.u).busy * (parts - 1) // parts)

    @cached_property
    def seldom(self) -> frozenset[str]:
        """Ops that mostly have nothing to do with the accumulator that they change."""
        known = asynchronous(self.facts.info)
        return seldom(
            self.region, {op: known[e].observed for op in self.region.ops if (e := self._engine(op))}
        )

    def _chained(self, u: str, v: str, b: Buffer) -> bool:
        """Whether both multiply into ``b`` alike on one in-order queue: the unit adds one product after the other."""
        a, c = self.region.statement(u), self.region.statement(v)
        if not (
            isinstance(a, Gemm)
            and isinstance(c, Gemm)
            and self._engine(u)
            and self._engine(u) == self._engine(v)
        ):
            return False
        x, y = self.facts.atoms[u], self.facts.atoms[v]
        alike = (x.atom, x.n, x.warps) == (y.atom, y.n, y.warps)
        operands = {r.buffer.storage for r in (a.a, a.b, c.a, c.b)}
        return alike and a.c.buffer.storage is b and c.c.buffer.storage is b and b not in operands

    def _engine(self, op: str) -> str:
        """The asynchronous engine of an op, "" if it has none. A loop or branch inside waits for all that it starts."""
        nodes = self.region.ops[op]
        return self.facts.engine_of.get(op, "") if nodes[0].name == op else ""

    def _stream(self, op: str) -> str:
        engine = self._engine(op)
        if engine == COPY and asynchronous(self.facts.info)[engine].observed == SIGNAL:
            return COPY
        teams = self.facts.teams
        return next(iter(teams.of_statement(self.region.statement(op)))) if teams else MAIN

    def _ops(self) -> Iterator[Op]:
        for name, nodes in self.region.ops.items():
            cost, engine = self._cost(name), self._engine(name)
            read = dict.fromkeys(b for n in nodes for b in n.reads if b in self.names)
            written = dict.fromkeys(b for n in nodes for b in n.writes)
            rings = [b for b in written if not self.storage[self.names[b]].carried]
            yield Op(
                name,
                self._stream(name),
                engine,
                cost.busy if engine else 0,
                cost.latency,
                cost.issue,
                tuple(Read(self.names[b]) for b in read),
                tuple(self.names[b] for b in rings),
                tuple(self.names[b] for b in written if b not in rings),
                cost.fluid,
                seldom=name in self.seldom,
            )

    def _cost(self, op: str) -> Cost:
        rates, engine, s = Rates.of(self.facts.info), self._engine(op), self.region.statement(op)
        known = asynchronous(self.facts.info)
        match s:
            case _ if op in self.seldom:
                return Cost(ASKED, ASKED)
            case Copy() if engine:
                return rates.copy(s, known[engine])
            case AtomicTile() if op in self.facts.adds:
                return rates.stage(s.value)
            case Gemm() if engine:
                return rates.multiply(s, self.facts.atoms[op], known[engine])
            case _:
                cost = rates.synchronous(s, self.facts.atoms.get(op))
                if self.facts.teams is None or cost.busy < SHORT:
                    return cost
                return replace(cost, busy=LONE * cost.busy, latency=LONE * cost.latency)

    @cached_property
    def names(self) -> dict[Buffer, str]:
        """Buffers that the loop writes, each with a name of its own."""
        out: dict[Buffer, str] = {}
        for n in self.region.nodes:
            for b in n.writes:
                if b not in out:
                    out[b] = b.name if b.name not in out.values() else f"{b.name}.{b.number}"
        return out

    @cached_property
    def storage(self) -> dict[str, Storage]:
        """Tiles that the loop writes, by name."""
        return {name: self._storage(b, name) for b, name in self.names.items()}

    def _storage(self, b: Buffer, name: str) -> Storage:
        if b.space not in (Space.SHARED, Space.GLOBAL):
            owner = next(
                self._stream(op) for op, nodes in self.region.ops.items() if any(b in n.writes for n in nodes)
            )
            return Storage(name, REGISTER, size(b), 1, self.region.carries(b), owner, buffer=b)
        if b.space is Space.GLOBAL:
            return Storage(name, str(b.space), 0, 1, self.region.carries(b), buffer=b)
        filled = self.filled(b)
        least = self.pin if filled and self.pin else 1
        most = (self.pin or (self.pins.slots if self.pins else DEEPEST)) if filled else 1
        carried = self.region.carries(b) and not filled
        return Storage(name, str(b.space), self.facts.bytes(b), most, carried, "", least, filled, b)

    def filled(self, b: Buffer) -> bool:
        """Whether copies of an engine write a tile, anew in each iteration, and nobody outside the loop sees it.

        When what they bring has been read, threads may fill all of the tile once more.
        """
        writers = [self.region.owner[n.name] for n in self.region.nodes if b in n.writes]
        by_engine = [w in self.region.ops and self._engine(w) == COPY for w in writers]
        return (
            b.space is Space.SHARED
            and b not in self.region.outside
            and (
                (all(by_engine) and not self.region.carries(b))
                or (by_engine[:1] == [True] and not any(by_engine[1:]) and self.region.renewed(b))
            )
        )
