"""Tiles that a block fills once for each tile of the grid: the thread that starts copies fills them ahead, by boxes.

A ring whose iterations are the block's turns. ``filled`` tells the user's threads that the boxes have landed, ``read`` tells the
one that copies that the last of them has read the slot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ...expr import Buffer, Expr, binary
from ...inference.bulk import BoxCopy
from ...inference.schedule.program import Token, Wait
from ...program import Alloc, Copy, For, Gemm, If, Launch, Place, Stmt
from ...program.visit import read_buffers, statements
from .context import Context
from .signals import SIGNAL, Signals

LEAD = "lead"  # stands where tokens of loops have the name of their loop


@dataclass
class Leads:
    """``boxes``: those of the copies by node name. ``turn``: how many tiles of the grid this block had before. ``repeats``: whether
    it can have several.

    ``on_engine``: whether a gemm is the matrix engine's. ``threads``: how many read a tile. ``depth``: slots of each tile.
    """

    context: Context
    launch: Launch
    boxes: Mapping[str, BoxCopy]
    turn: Expr
    repeats: bool
    on_engine: Callable[[Gemm], bool]
    threads: Callable[[Copy], int]
    depth: dict[Buffer, int] = field(default_factory=dict[Buffer, int])

    def __post_init__(self) -> None:
        names = self.context.plan.graph.names
        self.copies = {
            id(s): s for s in self.launch.body if isinstance(s, Copy) and names.get(id(s)) in self.boxes
        }
        self.depth = {s.dst.buffer.storage: 1 for s in self.copies.values()}

    def name(self, s: Copy) -> str:
        return self.context.plan.graph.names[id(s)]

    def deepen(self, sizes: Mapping[Buffer, int], spare: int) -> None:
        """Give tiles a second slot where shared memory has room: the next one is then filled while this one is read.

        Those that are read last come first: what follows in the copies' order waits for them. ``sizes``: elements of a slot;
        ``spare``: bytes.
        """
        place = {id(s): n for n, s in enumerate(self.launch.body)}
        latest = sorted(self.copies.values(), key=lambda s: place[id(self.last(s))], reverse=True)
        for storage in dict.fromkeys(s.dst.buffer.storage for s in latest) if self.repeats else ():
            size = sizes[storage] * storage.dtype.bits // 8
            if size <= spare:
                self.depth[storage] = 2
                spare -= size

    # Tokens.

    def tokens(self) -> Iterator[tuple[str, Token]]:
        for s in self.copies.values():
            name, slots = self.name(s), self.depth[s.dst.buffer.storage]
            yield LEAD, Token(f"{name}.filled", SIGNAL, (name,), slots)
            if self.repeats:
                yield LEAD, Token(f"{name}.read", SIGNAL, (f"{name}.readers",), slots)

    def arrivals(self, token: Token) -> int:
        """The copies arrive once, with their bytes; each subgroup when it has read the tile."""
        s = next(s for s in self.copies.values() if token.name.startswith(f"{self.name(s)}."))
        filled = token.name.endswith(".filled")
        return 1 if filled else self.threads(s) // self.context.plan.info.subgroup

    def token(self, s: Copy, event: str) -> Token:
        return next(t for _, t in self.tokens() if t.name == f"{self.name(s)}.{event}")

    # Who reads.

    def readers(self, s: Copy) -> list[Stmt]:
        return self.reading.get(s.dst.buffer.storage, [])

    @cached_property
    def reading(self) -> dict[Buffer, list[Stmt]]:
        """The statements that read each tile."""
        out: dict[Buffer, list[Stmt]] = {}
        for t in statements(self.launch.body):
            for b in {b.storage for b in read_buffers(t)} if not isinstance(t, Alloc) else ():
                out.setdefault(b, []).append(t)
        return out

    def by_engine(self, s: Copy) -> bool:
        """Whether only products of the matrix engine read the tile."""
        return all(isinstance(t, Gemm) and self.on_engine(t) for t in self.readers(s))

    def last(self, s: Copy) -> Stmt:
        """The statement of the launch's body behind which nobody reads the tile any more; the copy itself if nobody does."""
        readers = {id(t) for t in self.readers(s)}
        touching = [t for t in self.launch.body if any(id(u) in readers for u in statements((t,)))]
        return touching[-1] if touching else s

    def read_early(self, loop: For, late: Callable[[Gemm], bool]) -> list[Copy]:
        """Tiles that only products of ``loop`` read, none of them ``late``: of an iteration that ends after the loop."""
        out: list[Copy] = []
        for s in self.copies.values():
            readers = self.readers(s)
            inside = {id(t) for t in loop.body}
            early = all(isinstance(t, Gemm) and id(t) in inside and not late(t) for t in readers)
            if readers and early and self.by_engine(s):
                out.append(s)
        return out

    # What is done.

    def wait(self, s: Copy, signals: Signals) -> Iterator[Stmt]:
        """The user's threads, where the copy stands."""
        yield from signals.wait(LEAD, self.token(s, "filled"), Wait("", 0), self.turn)

    def free(self, s: Copy, signals: Signals) -> Iterator[Stmt]:
        """The thread that copies, before it does."""
        if self.repeats:
            token = self.token(s, "read")
            yield from signals.wait(LEAD, token, Wait("", token.slots), self.turn)

    def filling(self, s: Copy, signals: Signals) -> Place:
        return signals.at(LEAD, self.token(s, "filled"), self.turn)

    def released(self, s: Copy, signals: Signals) -> Iterator[Stmt]:
        """The user's threads, when they have read the tile.

        Each subgroup arrives for itself: one that lags behind, and waits for the slot yet, would miss its next round. Products,
        for which all of a group's subgroups must be there, are none where a loop has no iteration.
        """
        engines = self.context.instructions.bulk
        if not self.repeats or engines is None:
            return
        yield from (engines.subgroup_sync(),) if self.by_engine(s) else signals.handed_back()
        first = binary("==", binary("%", self.context.thread, self.context.plan.info.subgroup), 0)
        yield If(first, (engines.arrive(signals.at(LEAD, self.token(s, "read"), self.turn)),))
