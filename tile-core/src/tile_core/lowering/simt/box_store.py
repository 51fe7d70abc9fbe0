"""Results from registers to a tensor by the copy engine: each group stages pieces of its rows in shared memory, then stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import prod

from ...dtypes import DType
from ...expr import Buffer, Expr, Space, Var, binary, const
from ...inference.bulk import BoxCopy, boxes, part_of
from ...inference.model import GemmChoice
from ...layout.layout import Layout
from ...layout.panels import span_tile
from ...program import Copy, If, Place, Region, Stmt, Sync
from ...verification.comparisons import never_above
from .arena import size_of
from .context import Context, Team
from .sole_store import sole_store
from .staged_results import StagedMatrices, StagedRows, rows_of_threads

GROUP_BARRIERS = 2  # numbers of the barriers of the groups; 0 is the whole block's, 1 that of all groups
MOST_BUFFERS = 4


@dataclass
class BoxStore:
    """Stores of one team of a launch. ``spare``: bytes of shared memory that they may take; ``box``: the parameter of a tensor's
    boxes; ``free``: tiles that nobody uses any more when results are stored. ``sums``: staging tiles by name of the sum;
    ``proven``: sums that begin inside their tensor in any iteration.
    """

    context: Context
    team: Team
    group: Var
    box: Callable[[BoxCopy], Var]
    spare: int
    free: tuple[Buffer, ...] = ()
    staged: list[Buffer] = field(default_factory=list[Buffer])
    sums: dict[str, Buffer] = field(default_factory=dict[str, Buffer])
    proven: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        rules, engines = self.context.plan.info.bulk, self.context.instructions.bulk
        assert rules is not None and engines is not None
        self.rules, self.engines = rules, engines
        self.groups = self.team.threads // rules.group

    def store(self, s: Copy) -> tuple[Stmt, ...] | None:
        """The statements of a copy from a fragment to a tensor; None if it is not for the copy engine."""
        choice = self.accumulator(s) if self.engines.stores_boxes else None
        piece = choice and self.piece(s, choice)
        if choice is None or piece is None:
            return None
        return tuple(_Store(self, s, choice, *piece).statements())

    def accumulator(self, s: Copy) -> GemmChoice | None:
        """How the fragment was made, if each group holds whole rows of it."""
        fragment = s.src.buffer
        if fragment.space is not Space.FRAGMENT or not s.src.whole or s.dst.buffer.space is not Space.GLOBAL:
            return None
        if not sole_store(self.context.launch, s.dst.buffer.storage):
            return None
        layout = self.context.plan.layouts.get(fragment)
        if layout is None or layout.padded:
            return None
        for choice in self.context.plan.atoms.values():
            on_engine = choice.atom is not None and choice.atom.threads == self.rules.group
            if on_engine and choice.c == layout and choice.warps == (self.groups, 1):
                return choice
        return None

    def piece(self, s: Copy, choice: GemmChoice) -> tuple[BoxCopy, Layout, int] | None:
        """(boxes of one piece, layout of its staging tile, how many staging tiles) of a group's rows."""
        rows, columns = choice.c.shape
        rows //= self.groups
        dst, bits = s.dst, s.dst.dtype.bits
        if dst.buffer.base is not None or dst.buffer.source is not None or bits not in (16, 32):
            return None  # of these there is no tensor that could be described to the engine
        for span in self.rules.spans:
            width = span * 8 // bits
            if columns % width or rows > self.rules.largest:
                continue
            layout = span_tile((rows, width), span, bits)
            found = boxes(self.part(dst, rows, width, 0), layout, self.rules)
            count = min(columns // width, MOST_BUFFERS, self.room() // (self.groups * rows * span))
            if found is None or len(found.pieces) != 1 or count < 1:
                return None
            if any(found.box[n] > 1 for n in self.unsure(found)):
                return None  # part of it may be inside all the same
            return found, layout, count
        return None

    def part(self, dst: Region, rows: int, width: int, column: int) -> Region:
        """The box of the region that this group's piece from ``column`` on covers."""
        return part_of(dst, rows, width, binary("*", self.group, rows), column)

    def starts_inside(self, found: BoxCopy) -> bool:
        """A box that begins before the tensor cannot be stored."""
        return not any(True for _ in self.unsure(found))

    def unsure(self, found: BoxCopy) -> Iterator[int]:
        """Dimensions in which a box may begin before the tensor, for all that is known."""
        groups = {self.group: (const(0), const(self.groups - 1))}
        known = self.context.known.having(groups)
        yield from (n for n, x in enumerate(found.start) if not never_above(const(0), x, known))

    def tile(self, dtype: DType, elements: int) -> Buffer:
        """Staging tiles, shared by all stores of one type."""
        for b in self.staged:
            if b.dtype == dtype and (b.shape[0] == elements or b.storage in self.reused):
                return b
        taken = {b.storage for b in self.staged}
        for b in (self.context.tiles[b] for b in self.free):
            if b not in taken and size_of(b) >= elements * dtype.bytes:
                self.staged.append(self._seen_as(b, dtype))
                return self.staged[-1]
        out = self.context.scratch("stored", elements, dtype)
        self.staged.append(out)
        self.spare -= elements * dtype.bytes
        return out

    def _seen_as(self, tile: Buffer, dtype: DType) -> Buffer:
        """A tile's memory as elements of a type."""
        if tile.dtype == dtype:
            return tile
        name, count = f"{tile.name}_as_{dtype.name}", size_of(tile) // dtype.bytes
        number = self.context.unique(name)
        return Buffer(name, (count,), dtype, Space.SHARED, number=number, source=tile)

    def adding(self, s: Stmt, elements: int, dtype: DType) -> Buffer:
        """Staging tiles of a sum, which no other op has: room was kept for them."""
        name = self.context.name_of(s)
        if name not in self.sums:
            self.sums[name] = self.context.scratch("added", elements, dtype)
            self.staged.append(self.sums[name])
        return self.sums[name]

    def room(self) -> int:
        """Bytes that stores may take: what is spare, or the largest tile that is free."""
        return max(self.spare, *(size_of(b) for b in self.reused), 0)

    @property
    def reused(self) -> set[Buffer]:
        return {self.context.tiles[b] for b in self.free}

    @property
    def number(self) -> Expr:
        """That of the barrier of this group's threads."""
        if self.groups == 1:
            return const(self.team.barrier)
        return self.context.simple(binary("+", self.group, GROUP_BARRIERS))

    def meet(self) -> Stmt:
        """All threads of this group."""
        return Sync(self.team.barrier if self.groups == 1 else self.number, self.rules.group)

    def leader(self, *body: Stmt) -> Stmt:
        return If(binary("==", binary("%", self.context.thread, self.rules.group), 0), body)

    def finish(self) -> tuple[Stmt, ...]:
        """A block's shared memory is there until it ends: the last stores must have been read."""
        return (self.leader(self.engines.settle("store", 0)),) if self.staged else ()


@dataclass
class _Store:
    """One copy. Pieces of ``width`` columns go through a ring of ``count`` staging tiles of each group."""

    owner: BoxStore
    s: Copy
    choice: GemmChoice
    found: BoxCopy
    layout: Layout
    count: int

    def __post_init__(self) -> None:
        self.context, self.engines = self.owner.context, self.owner.engines
        self.rows, self.width = self.layout.shape
        self.size = prod(self.layout.shape)
        self.columns = self.choice.c.shape[1]
        self.registers = self.context.register_file(self.s.src.buffer)
        groups = self.owner.groups
        self.stage = self.owner.tile(self.s.dst.dtype, groups * self.count * self.size)
        self.box = self.owner.box(self.found)
        self.unsure = tuple(self.owner.unsure(self.found))
        kind = StagedRows if rows_of_threads(self.choice.c) else StagedMatrices
        self.staged = kind(
            self.context, self.engines, self.choice.c, self.layout, self.registers, self.stage, self.s
        )

    def statements(self) -> Iterator[Stmt]:
        for n in range(self.columns // self.width):
            yield from self.one(n)

    def one(self, n: int) -> Iterator[Stmt]:
        """Stage piece ``n`` when the store that used its staging tile has been read, then store it."""
        if n == 0 or n >= self.count:
            yield self.owner.leader(self.engines.settle("store", 0 if n == 0 else self.count - 1))
            yield self.owner.meet()
        at = binary("*", binary("+", binary("*", self.owner.group, self.count), n % self.count), self.size)
        yield from self.staged.write(at, n * self.width)
        yield self.engines.visible()
        yield self.owner.meet()
        part = self.owner.part(self.s.dst, self.rows, self.width, n * self.width)
        start = [self.context.simple(x) for x in part.start]
        source = Place(self.stage, (self.context.simple(at),), "r", window=True)
        # groups are told apart only where a staging tile is used twice; else all stores of the tile are one group
        many = self.columns // self.width
        commit = (self.engines.commit("store"),) if self.count < many or n == many - 1 else ()
        store = self.engines.store(self.box, start, source)
        for dimension in self.unsure:
            store = If(binary(">=", start[dimension], 0), (store,))
        yield self.owner.leader(store, *commit)
