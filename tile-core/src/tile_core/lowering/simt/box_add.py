"""Sums of accumulators into tensors by the copy engine: each group stages its part in shared memory, then the engine adds boxes.

Where threads add element by element, each instruction holds them up; the engine takes a whole tile while they go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from ...expr import Buffer, Expr, binary, const, substitute
from ...inference.adding import BoxAdd
from ...inference.bulk import boxes, part_of
from ...program import AtomicTile, If, Place, Region, Stmt
from .adder import Adder
from .box_store import BoxStore
from .staged_results import StagedPairs, StagedRows, rows_of_threads


def box_add(stores: BoxStore, s: AtomicTile, adder: Adder) -> Iterator[Stmt] | None:
    """The statements of an atomic sum; None if it is not for the copy engine."""
    found = stores.context.plan.adds.get(stores.context.name_of(s))
    if found is None or found.groups != stores.groups:
        return None
    add = Addition(stores, s, found)
    if not add.inside:
        return None
    return add.handed_over(adder) if adder.has(stores.context.name_of(s)) else add.alone()


def proves_inside(stores: BoxStore, s: AtomicTile) -> None:
    """Keep in mind that a sum begins inside its tensor in each iteration of its loop, if what is known of the loop says so."""
    name = stores.context.name_of(s)
    found = stores.context.plan.adds.get(name)
    if found is not None and found.groups == stores.groups and Addition(stores, s, found).inside:
        stores.proven.add(name)


@dataclass
class Addition:
    """One sum. A group's staging tiles are its own, and its own barrier is enough."""

    owner: BoxStore
    s: AtomicTile
    add: BoxAdd

    def __post_init__(self) -> None:
        self.context, self.engines = self.owner.context, self.owner.engines
        self.width = self.add.piece.shape[1]
        self.size = prod(self.add.piece.shape)
        found = boxes(self.part(0), self.add.piece, self.owner.rules)
        assert found is not None
        self.found = found

    @property
    def inside(self) -> bool:
        """A box that begins before the tensor cannot be added."""
        known = self.context.name_of(self.s) in self.owner.proven
        return known or self.owner.starts_inside(self.found)

    def part(self, n: int) -> Region:
        """The box of piece ``n`` of this group. Groups lie one above the other, then side by side, as those of a product."""
        above, group = self.add.choice.warps[0], self.owner.group
        row = binary("*", binary("%", group, above), self.add.rows)
        column = binary("*", binary("//", group, above), self.add.columns)
        return part_of(self.s.dst, self.add.rows, self.width, row, binary("+", column, const(n * self.width)))

    def alone(self) -> Iterator[Stmt]:
        """One thread of each group begins what the others have staged. They wait until it was read before."""
        yield self.owner.leader(self.engines.settle("store", 0))
        yield self.owner.meet()
        yield from self.staged()
        yield self.owner.meet()
        yield self.owner.leader(*self.begun())

    def handed_over(self, adder: Adder) -> Iterator[Stmt]:
        """A thread that does nothing else begins it: neither it nor its group is held up."""
        yield adder.read(self.owner.group)
        yield from self.staged()
        yield self.engines.subgroup_sync()
        lane = binary("%", self.context.thread, self.context.plan.info.subgroup)
        yield If(binary("==", lane, 0), (adder.tell(self.owner.group),))

    def staged(self) -> Iterator[Stmt]:
        """This group's part, in its staging tiles, for the engine to see."""
        registers = self.context.register_file(self.s.value.buffer)
        given = self.context, self.engines, self.add.choice.c, self.add.piece, registers, self.stage, self.s
        if rows_of_threads(self.add.choice.c):
            for n in range(self.add.pieces):
                yield from StagedRows(*given).write(self.at(n), n * self.width)
        else:
            pairs = StagedPairs(*given, beside=self.add.choice.warps[1])
            yield from pairs.write(self.at(0), 0)
        yield self.engines.visible()

    @property
    def stage(self) -> Buffer:
        return self.owner.adding(self.s, self.add.elements, self.s.dst.dtype)

    def begun(self, group: int | None = None) -> Iterator[Stmt]:
        """What begins the sum of a group's part, as one group of stores. ``group``: which, if not this thread's own."""
        mine = {} if group is None else {self.owner.group: const(group)}

        def of(x: Expr) -> Expr:
            return self.context.simple(substitute(x, mine))

        for n in range(self.add.pieces):
            source = Place(self.stage, (of(self.at(n)),), "r", window=True)
            yield self.engines.add(self.owner.box(self.found), [of(x) for x in self.part(n).start], source)
        yield self.engines.commit("store")

    def at(self, n: int) -> Expr:
        """Where the staging tile of a piece begins."""
        piece = binary("+", binary("*", self.owner.group, self.add.pieces), n)
        return binary("*", piece, self.size)
