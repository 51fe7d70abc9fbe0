"""Sums that the matrix engine keeps in a memory of its own while it works: where they are, and their way to the registers and back.

The registers of a fragment are what the rest of a kernel sees. Before products that add to them they are put into the engine's
memory, when the products are done they are fetched from there. Each group of threads has columns of its own; column i of a
thread's row is its register i.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import prod

from ...dtypes import INT32, UINT32
from ...errors import Unsupported
from ...expr import Buffer, Expr, Load, Space, Var, binary, cast, const
from ...program import Alloc, Bind, Gemm, If, Launch, Place, Stmt, Store, Sync
from ...program.visit import statements
from .context import Context
from .instructions import BulkEngines, SumsMemory
from .signals import Signals

LEAST_COLUMNS = 32


def largest_power(count: int) -> int:
    """The largest power of two that is not above ``count``."""
    return 1 << (count.bit_length() - 1)


@dataclass
class Sums:
    """The engine's memory in one launch.

    ``group``: this thread's group, one of ``groups``; ``meet``: its threads wait for each other. ``signals`` has a token with the
    name ``finished``, at which the engine arrives once for each group.
    """

    context: Context
    launch: Launch
    engines: BulkEngines
    memory: SumsMemory
    signals: Signals
    group: Var
    groups: int
    meet: Callable[[], Stmt]
    first: dict[Buffer, int] = field(default_factory=dict[Buffer, int], init=False)

    def __post_init__(self) -> None:
        self.base = Var("sums", UINT32, self.context.unique("sums"))
        self.rounds = Buffer("rounds", (), INT32, Space.VAR, number=self.context.unique("rounds"))
        self.each = 0
        for s in statements(self.launch.body):
            c = (
                s.c.buffer.storage
                if isinstance(s, Gemm) and self.context.name_of(s) in self.context.plan.engines
                else None
            )
            if c is not None and c not in self.first:
                self.first[c] = self.each
                self.each += self.count(c)
        self.columns = max(LEAST_COLUMNS, 1 << (self.groups * self.each - 1).bit_length())
        self._fits()

    def _fits(self) -> None:
        space = self.context.plan.info.space("tensor")
        room = (
            space.capacity // (self.context.plan.info.bulk.group * 4)
            if space and self.context.plan.info.bulk
            else 0
        )
        if self.columns > room:
            raise Unsupported(
                f"the sums of this kernel's products take {self.columns} columns of tensor memory,"
                f" {self.context.plan.info.target} has {room}",
                self.launch.span,
                help="use smaller tiles",
            )

    def count(self, c: Buffer) -> int:
        """Registers of a thread for an accumulator."""
        return prod(d for d in self.context.register_file(c).shape if isinstance(d, int))

    # Around the work of a block.

    def reserve(self) -> tuple[Stmt, ...]:
        """Before the first barrier of the block."""
        at = self.signals.own("memory")
        first = binary("<", self.context.thread, self.context.plan.info.subgroup)
        taken = self.memory.reserve(self.columns, at)
        return (If(first, (self.engines.subgroup_sync(), *taken)),)

    def start(self) -> tuple[Stmt, ...]:
        """After it, in the threads that compute."""
        whole = Var("whole", UINT32, self.context.unique("whole"))
        own = binary("*", cast(self.group, "uint32"), const(self.each, UINT32))
        return (
            self.memory.where(self.signals.own("memory"), whole),
            Bind(self.base, binary("+", whole, own)),
            Alloc(self.rounds),
            Store(self.rounds, (), const(0)),
        )

    def release(self) -> tuple[Stmt, ...]:
        """At the end of the block, in all of its threads."""
        first = binary("<", self.context.thread, self.context.plan.info.subgroup)
        whole = Var("whole", UINT32, self.context.unique("whole"))
        found = self.memory.where(self.signals.own("memory"), whole)
        freed = self.memory.release(whole, self.columns)
        return (Sync(), If(first, (found, self.engines.subgroup_sync(), *freed)))

    # Around products.

    def at(self, c: Buffer) -> Expr:
        """Where the columns of this thread's group for an accumulator begin."""
        return binary("+", self.base, const(self.first[c], UINT32))

    def leader(self, *body: Stmt) -> Stmt:
        """The thread of each group that starts products and asks for their end."""
        rules = self.context.plan.info.bulk
        assert rules is not None
        return If(binary("==", binary("%", self.context.thread, rules.group), 0), body)

    def settled(self) -> Iterator[Stmt]:
        """Wait until all products are done that were started, and nothing else."""
        yield from self.finished()
        yield self.meet()

    def finished(self) -> Iterator[Stmt]:
        """The same; before the next time all threads of the group must have met, or the leader would be a phase ahead of them."""
        token = self.signals.own("finished")
        yield self.leader(self.memory.finish(token))
        round = Load(self.rounds, ())
        yield self.engines.wait(token, round)
        yield Store(self.rounds, (), binary("-", const(1), round))

    def fetched(self, *accumulators: Buffer) -> Iterator[Stmt]:
        """The registers of accumulators become what the engine has; after ``finished``."""
        yield self.engines.subgroup_sync()
        yield self.memory.after()
        for c in accumulators:
            for first, width in self._pieces(c):
                yield self.memory.load(self._cells(c, first), self._registers(c, first, "w"), width)
        yield self.memory.loaded()
        for c in accumulators:
            yield self.engines.hold(self._registers(c, 0, "rw"), self.count(c), c.dtype)
        # the next products may not begin before all threads have read these sums
        yield self.memory.before()
        yield self.meet()
        yield self.memory.after()

    def put(self, *accumulators: Buffer) -> Iterator[Stmt]:
        """The engine gets what the registers of accumulators hold; all threads of the group meet, and then ``memory.after``."""
        yield self.engines.subgroup_sync()
        for c in accumulators:
            for first, width in self._pieces(c):
                yield self.memory.store(self._cells(c, first), self._registers(c, first, "r"), width)
        yield self.memory.stored()
        yield self.memory.before()

    def _pieces(self, c: Buffer) -> Iterator[tuple[int, int]]:
        """(first register, how many) of the moves of an accumulator."""
        at, count = 0, self.count(c)
        while at < count:
            width = min(self.memory.widest, largest_power(count - at))
            yield at, width
            at += width

    def _cells(self, c: Buffer, first: int) -> Expr:
        """The address that this thread's subgroup reaches a column by."""
        info = self.context.plan.info
        assert info.bulk is not None
        number = binary("//", binary("%", self.context.thread, info.bulk.group), info.subgroup)
        row = binary("*", cast(number, "uint32"), const(info.subgroup << 16, UINT32))
        return binary("+", binary("+", self.at(c), row), const(first, UINT32))

    def _registers(self, c: Buffer, first: int, access: str) -> Place:
        return Place(self.context.register_file(c), (const(first),), access)
