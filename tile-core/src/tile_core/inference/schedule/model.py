"""What a loop body is for scheduling: units, streams, storage and ops, as frozen values that check themselves.

A *unit* is hardware that works. A *stream* is a list of instructions that one agent (or all warps of a block together) runs
in order and that can block. A *synchronous* op holds its stream until it is done; an *asynchronous* one costs its stream
``issue`` clocks and then runs on the queue (stream, unit). All times are clocks of one core.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil

from ...errors import InternalError
from ...expr import Buffer

SIGNAL, GROUP, INTERLOCK, BARRIER = "signal", "group", "interlock", "barrier"  # kinds of tokens
REGISTER = "register"
ORDER = "ORDER"  # a kind of dependence
PIN = "PIN"  # another one: what the user fixed, counted from issue to issue
WORK, RELAY, MEET = "work", "relay", "barrier"  # kinds of ops


def done(op: str) -> str:
    """The name of the relay of ``op``."""
    return f"{op}.done"


@dataclass(frozen=True, slots=True)
class Unit:
    """Hardware that works. ``fluid``: a bandwidth, of which only the sum in an iteration counts.

    ``observed``: how the end of an asynchronous op is seen (as in ``hardware.Engine``). ``in_order``: ops of one queue start
    and end in issue order. ``together``: so many threads start an op together, and its end is one event of them all; 0: each
    for itself.
    """

    name: str
    observed: str = GROUP
    fluid: bool = False
    in_order: bool = True
    together: int = 0


@dataclass(frozen=True, slots=True)
class Stream:
    """One agent. ``registers`` a thread may hold in tiles (0: not limited). ``cooperative``: several warps, which drift apart
    and share work through memory. ``budget``: registers that its tiles should take at once (0: any number).
    """

    name: str
    threads: int = 1
    registers: int = 0
    cooperative: bool = False
    budget: int = 0


@dataclass(frozen=True, slots=True)
class Storage:
    """A tile. A *ring* is rewritten in each iteration: it has ``most`` slots at most and ``least`` at least.

    ``carried``: updated in place over iterations, so it has one slot. ``stream``: owner of a tile in registers.
    ``filled``: an asynchronous copy writes it, so slots to spare let that run ahead. ``buffer``: what it is in the kernel.
    """

    name: str
    space: str
    bytes: int
    most: int = 8
    carried: bool = False
    stream: str = ""
    least: int = 1
    filled: bool = False
    buffer: Buffer | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise InternalError(f"{self.name}: a ring of {self.least} to {self.most} slots")


@dataclass(frozen=True, slots=True)
class Read:
    """A read of what was written ``back`` iterations ago."""

    name: str
    back: int = 0


@dataclass(frozen=True)
class Op:
    """A step of the body. ``busy``: clocks on its unit. ``latency``: from start to completion.

    ``issue`` above 0: asynchronous. ``updates``: carried storage. ``fluid``: clocks on bandwidths, by unit.
    ``kind``: ``work``; ``relay``, which sees the end of an op for other streams; ``barrier``, at which the warps of a stream
    meet in every kernel step, also where there is no iteration to run. ``seldom``: it changes registers of products only now and
    then, and waits for these itself when it does.
    """

    name: str
    stream: str
    unit: str = ""
    busy: int = 0
    latency: int = 0
    issue: int = 0
    reads: tuple[Read, ...] = ()
    writes: tuple[str, ...] = ()
    updates: tuple[str, ...] = ()
    fluid: tuple[tuple[str, int], ...] = ()
    kind: str = WORK
    seldom: bool = False

    @cached_property
    def asynchronous(self) -> bool:
        return self.issue > 0

    @cached_property
    def span(self) -> int:
        """Clocks from start to completion."""
        return max(self.busy, self.latency)

    @cached_property
    def hold(self) -> int:
        """Clocks that its stream is taken."""
        return self.issue if self.asynchronous else self.span


@dataclass(frozen=True, slots=True)
class Dep:
    """``u`` of iteration i - distance is complete before ``v`` of iteration i starts.

    ``ring``: the depth of ``storage`` is added to ``distance``. ``queued``: an in-order queue that both are in keeps it by
    itself (all but data that u has still to write when v begins). Kind ``ORDER``: ``v`` waits for the end of ``u`` itself, if it
    has to; it only comes after it in their stream. Kind ``PIN``: the user wants it so, nothing is waited for. ``early``: clocks
    before the end of ``u`` at which v may start, as it waits for the rest where it needs it.
    """

    u: str
    v: str
    distance: int
    kind: str
    storage: str
    ring: bool = False
    queued: bool = False
    early: int = 0

    def at(self, depth: Mapping[str, int]) -> int:
        return self.distance + (depth[self.storage] if self.ring else 0)

    def __str__(self) -> str:
        return f"{self.kind} {self.u} -> {self.v} ({self.storage})"


@dataclass(frozen=True)
class Body:
    """One loop body. ``capacity``: bytes that rings may take, by space. ``signal``: clocks until a completion is seen in
    another stream. ``relay``: clocks of a relay. ``everywhere``: nodes that every stream computes for itself.
    ``trips``: iterations at most, by the extents of the tensors that copies walk along; 0 if that is not known.
    """

    name: str
    units: tuple[Unit, ...]
    streams: tuple[Stream, ...]
    storage: tuple[Storage, ...]
    ops: tuple[Op, ...]
    capacity: Mapping[str, int] = field(default_factory=dict[str, int])
    signal: int = 0
    relay: int = 16
    everywhere: tuple[str, ...] = ()
    trips: int = 0

    def __post_init__(self) -> None:
        names = [o.name for o in self.ops]
        streams = {s.name for s in self.streams}
        if len(set(names)) != len(names) or any(o.stream not in streams for o in self.ops):
            raise InternalError(f"{self.name}: ops {names} in streams {sorted(streams)}")

    @cached_property
    def op(self) -> dict[str, Op]:
        return {o.name: o for o in self.ops}

    @cached_property
    def tile(self) -> dict[str, Storage]:
        return {s.name: s for s in self.storage}

    @cached_property
    def stream(self) -> dict[str, Stream]:
        return {s.name: s for s in self.streams}

    @cached_property
    def unit(self) -> dict[str, Unit]:
        return {u.name: u for u in self.units}

    def queue(self, u: str) -> list[str]:
        """The ops of the queue that ``u`` runs on."""
        o = self.op[u]
        return [x.name for x in self.ops if x.asynchronous and x.stream == o.stream and x.unit == o.unit]

    def fifo(self, u: str, v: str) -> bool:
        """Whether both go through one queue, which starts them in issue order."""
        a, b = self.op[u], self.op[v]
        return a.asynchronous and b.asynchronous and a.stream == b.stream and a.unit == b.unit

    def in_order(self, u: str) -> bool:
        """Whether earlier instances of ``u`` are complete earlier."""
        o = self.op[u]
        return not o.asynchronous or self.unit[o.unit].in_order

    def same_queue(self, u: str, v: str) -> bool:
        """Whether v starts after the u before it has read its operands, and ends after it."""
        return self.fifo(u, v) and self.unit[self.op[u].unit].in_order

    def together(self, u: str) -> int:
        """How many threads start the asynchronous op ``u`` together; 0 if each does for itself."""
        o = self.op[u]
        return self.unit[o.unit].together if o.asynchronous else 0

    def warps(self, op: str, uneven: bool) -> tuple[int, ...]:
        """The warps that stand for all of an op's stream: two arbitrary ones.

        ``uneven``: one warp of a group tells for all of it. Then they are that one, another one of its group, and the one that
        tells for another group if there are several.
        """
        stream = self.stream[self.op[op].stream]
        if not stream.cooperative:
            return (0,)
        group = max((u.together for u in self.units), default=0)
        return (0, 1, 2) if uneven and 0 < group < stream.threads else (0, 1)

    def tellers(self, op: str, uneven: bool) -> tuple[int, ...]:
        """Those of them that tell for their group."""
        return tuple(w for w in self.warps(op, uneven) if w != 1 or not uneven)

    def mates(self, op: str, w: int, uneven: bool) -> tuple[int, ...]:
        """The warps with which one starts an op: it does not end before they have come to it.

        That they have come there says nothing of what they read or wrote before: a product orders nobody's memory accesses.
        """
        return (1 - w,) if uneven and w < 2 and self.together(op) else ()

    def observed(self, u: str) -> str:
        """How the end of the asynchronous op ``u`` is seen."""
        return self.unit[self.op[u].unit].observed

    def shared(self, storage: str) -> bool:
        """Whether warps of one stream see each other's part of it."""
        tile = self.tile.get(storage)
        return tile is not None and tile.space != REGISTER

    def pairs(self, d: Dep, uneven: bool) -> Iterator[tuple[int, int]]:
        """The warps of u and of v between which a dependence is: only the same where it is in its registers, or if it always
        writes the same elements. ``uneven`` as for ``warps``.
        """
        one_stream = self.op[d.u].stream == self.op[d.v].stream
        private = one_stream and (not self.shared(d.storage) or (d.u == d.v and d.kind == "WAW"))
        one_end = uneven and self.together(
            d.u
        )  # one event of the group, which the warp that tells stands for
        for x in self.warps(d.u, uneven):
            for y in (x,) if private else self.warps(d.v, uneven):
                if not one_end or x == 0 or (one_stream and x == y):
                    yield x, y

    def weight(self, d: Dep) -> tuple[int, bool]:
        """(clocks, whether they count to the start of v rather than to its issue) from the start of u."""
        u, v = self.op[d.u], self.op[d.v]
        if d.kind == ORDER:
            return 0, False
        if d.kind == PIN:
            # before the next step's begin, or behind an op of its stream; at its own step's begin or later
            return int(d.distance > 0 or u.stream == v.stream), False
        if d.queued:
            return u.busy, True
        return u.span - d.early + (self.signal if u.stream != v.stream else 0), False


def work(ops: Iterable[Op]) -> dict[str, int]:
    """Clocks of an iteration on every unit and every stream (``stream main``)."""
    total: dict[str, int] = {}
    for o in ops:
        parts = (*o.fluid, *(((o.unit, o.busy),) if o.unit else ()), (f"stream {o.stream}", o.hold))
        for name, clocks in parts:
            total[name] = total.get(name, 0) + clocks
    return total


def memory(body: Body, depth: Mapping[str, int]) -> dict[str, int]:
    """Bytes by space, and registers of a thread by ``register`` and stream."""
    use: dict[str, int] = {}
    for s in body.storage:
        count = 1 if s.carried else depth[s.name]
        key, size = s.space, s.bytes
        if s.space == REGISTER:
            key, size = f"{REGISTER} {s.stream}", ceil(s.bytes / (4 * body.stream[s.stream].threads))
        use[key] = use.get(key, 0) + count * size
    return use


def fits(body: Body, depth: Mapping[str, int]) -> bool:
    """Whether rings of these depths fit into memory and registers."""
    use = memory(body, depth)
    limits = {f"{REGISTER} {s.name}": s.registers for s in body.streams if s.registers} | dict(body.capacity)
    return all(use.get(key, 0) <= limit for key, limit in limits.items())
