"""A thread's registers of a result, converted, into a staging tile in shared memory: one piece of columns of a group's rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from ...dtypes import INT32, UINT32, DType
from ...errors import InternalError
from ...expr import Buffer, Expr, Load, Select, Var, binary, cast, const
from ...layout.layout import Axis, Layout
from ...program import AtomicTile, Bind, Copy, Place, Stmt, Store
from .context import Context, coordinate
from .instructions import BulkEngines
from .places import swizzled

ROWS, COLUMNS = 64, 8  # of one part of an accumulator: 4 subgroups of 16 rows; 8 columns to a matrix
VECTOR = 16  # bytes that one move brings, as many as the places of a swizzle keep together


def rows_of_threads(c: Layout) -> bool:
    """Whether each thread of a group holds whole rows of an accumulator: thread t row t, and so on."""
    rows, columns = c.shape
    alone = all(c.place((0, 1 << n)).get(Axis.THREAD, 0) == 0 for n in range((columns - 1).bit_length()))
    return alone and rows > ROWS and all(c.place((1 << n, 0)).get(Axis.THREAD, 0) == 1 << n for n in range(7))


@dataclass
class Staged(ABC):
    """``c``: layout of the registers; ``layout``: of a staging tile, one after the other in ``stage``.

    ``first``: the row of the tile that this group's ``height`` rows begin at, where groups share one.
    """

    context: Context
    engines: BulkEngines
    c: Layout
    layout: Layout
    registers: Buffer
    stage: Buffer
    s: Copy | AtomicTile
    first: Expr = const(0)
    height: int = 0

    def __post_init__(self) -> None:
        rules = self.context.plan.info.bulk
        assert rules is not None
        self.group = rules.group
        self.rows, self.width = self.height or self.layout.shape[0], self.layout.shape[1]
        self.words = self.context.private("packed", 4, UINT32)

    @property
    def dtype(self) -> DType:
        return self.s.dst.dtype

    @abstractmethod
    def write(self, at: Expr, column: int) -> Iterator[Stmt]:
        """This thread's elements of the columns from ``column`` on into the staging tile that begins at element ``at``."""

    def halves(self) -> bool:
        """Whether two results are rounded to one word."""
        return self.dtype.is_float and self.dtype.bits == 16 and self.registers.dtype.name == "float32"

    def element(self, at: Expr, row: Expr, column: Expr) -> Expr:
        place = coordinate(self.layout, (row, column), Axis.MEMORY, self.context)
        inside = self.context.simple(swizzled(place, self.layout.swizzle))
        return binary("+", self.context.simple(at), inside)

    def origin(self, at: Expr, row: Expr, column: Expr) -> Bind:
        """A name for where an element is; others are ``near`` it."""
        self.named = Var("near", INT32, self.context.unique("near"))
        return Bind(self.named, self.context.simple(self.element(at, row, column)))

    def near(self, row: int, column: int) -> Expr:
        """Where the element is that lies so far from the named one, whose own place has zeros in these bits.

        The bits that a swizzle changes are exchanged by themselves, all else is a constant: one address serves many elements.
        """
        extra = [c ^ (1 << j) for j, c in enumerate(self.layout.swizzle.columns)]
        sources = [j for j, e in enumerate(extra) if e]
        far = self.layout.place((row, column)).get(Axis.MEMORY, 0)
        inside = far % (1 << sources[0]) if sources else 0
        if sources and (far - inside) % (1 << sources[-1] + 1):
            raise InternalError(f"a swizzle moves what lies {row} rows and {column} columns away")
        return binary("+", binary("^", self.named, inside), far - inside)

    def value(self, row: int, column: int) -> Expr:
        """A register of this thread: the element so far from its first one."""
        at = self.c.place((row, column))[Axis.REGISTER]
        return Load(self.registers, (const(at),))

    def pack(self, n: int, low: Expr, high: Expr) -> Iterator[Stmt]:
        """Word ``n``: two results."""
        word = Var("word", UINT32, self.context.unique("word"))
        yield self.engines.pack(low, high, self.dtype, word)
        yield Store(self.words, (const(n),), word)


@dataclass
class StagedMatrices(Staged):
    """Registers as 8x8 matrices: a thread holds two neighbours in two rows of each, eight rows apart."""

    def write(self, at: Expr, column: int) -> Iterator[Stmt]:
        """This thread's elements of the columns from ``column`` on, converted, into the staging tile."""
        halves = self.halves() and self.width % 16 == 0
        for block in range(0, self.rows, ROWS):
            for c in range(0, self.width, 16 if halves else COLUMNS):
                if halves:
                    yield from self.matrices(at, block, column, c)
                else:
                    yield from self.pairs(at, block, column, c)

    def lane(self) -> tuple[Expr, Expr]:
        """(first row of this subgroup in a part of the accumulator, this thread's number in the subgroup)."""
        thread, lanes = self.context.thread, self.context.plan.info.subgroup
        inside = binary("%", thread, self.group)
        row = binary("*", binary("//", inside, lanes), 16)
        return binary("+", self.first, row), binary("%", thread, lanes)

    def matrices(self, at: Expr, block: int, column: int, c: int) -> Iterator[Stmt]:
        """Four 8x8 matrices: 16 rows by 16 columns of each subgroup. Thread i gives the address of row i % 16, half i // 16."""
        for n, (right, low) in enumerate(((0, 0), (0, 8), (8, 0), (8, 8))):
            x, y = (self.value(block + low, column + c + right + e) for e in (0, 1))
            yield from self.pack(n, x, y)
        row, lane = self.lane()
        row = binary("+", binary("+", row, block), binary("%", lane, 16))
        target = self.element(at, row, binary("+", binary("*", binary("//", lane, 16), 8), c))
        yield self.engines.store_matrices(
            Place(self.stage, (target,), "w", window=True), Place(self.words, (const(0),))
        )

    def pairs(self, at: Expr, block: int, column: int, c: int) -> Iterator[Stmt]:
        """Two neighbours in each of this thread's two rows."""
        row, lane = self.lane()
        for low in (0, 8):
            for e in (0, 1):
                there = binary("+", binary("+", row, block + low), binary("//", lane, 4))
                across = binary("+", binary("*", binary("%", lane, 4), 2), c + e)
                value = cast(self.value(block + low, column + c + e), self.dtype)
                yield Store(self.stage, (self.element(at, there, across),), value, span=self.s.span)


@dataclass
class StagedPairs(StagedMatrices):
    """Neighbours of 32 bits as they are: each pair with one instruction. ``beside``: groups that have columns of the accumulator.

    Half a subgroup writes 32 bytes of four rows at a time. A swizzle that exchanges the two places of 16 bytes of every other row
    leaves these rows in the same banks, so threads of odd rows write the pair of another column meanwhile.
    """

    beside: int = 1

    @property
    def turned(self) -> int:
        """So many columns away is what odd rows write; 0: rows do not meet."""
        exchanged = self.layout.swizzle(self.width) ^ self.width
        return self.width // 2 if exchanged == VECTOR // self.dtype.bytes and self.width > 2 * COLUMNS else 0

    def write(self, at: Expr, column: int) -> Iterator[Stmt]:
        """Those of all columns, into one staging tile behind the other."""
        vectors = self.context.instructions.vectors
        size = 2 * self.dtype.bytes
        pieces = range(column, self.c.shape[1] // self.beside, self.width)
        if vectors is None or size not in vectors.widths or self.dtype != self.registers.dtype:
            for n, first in enumerate(pieces):
                yield from super().write(binary("+", at, n * prod(self.layout.shape)), first)
            return
        row, lane = self.lane()
        line, odd = binary("//", lane, 4), binary("%", binary("//", lane, 4), 2)
        across = binary("+", binary("*", binary("%", lane, 4), 2), binary("*", odd, self.turned))
        yield self.origin(at, binary("+", row, line), across)
        chosen = self.context.private("pair", 2, self.dtype)
        for n, first in enumerate(pieces):
            for low in (block + x for block in range(0, self.rows, ROWS) for x in (0, COLUMNS)):
                for c in range(0, self.width, COLUMNS):
                    there = binary("+", self.near(low, c), n * prod(self.layout.shape))
                    to = Place(self.stage, (self.context.simple(there),), "w", aligned=size)
                    for e in (0, 1):
                        mine, other = (self.value(low, first + x + e) for x in (c, c ^ self.turned))
                        value = Select(binary("==", odd, 1), other, mine, lazy=False) if self.turned else mine
                        yield Store(chosen, (const(e),), value)
                    yield vectors.move(to, Place(chosen, (const(0),), aligned=size), size)


@dataclass
class StagedWords(StagedMatrices):
    """Registers of 16 bits, two neighbours to a word already, as 8x8 matrices."""

    def write(self, at: Expr, column: int) -> Iterator[Stmt]:
        row, lane = self.lane()
        yield self.origin(
            at,
            binary("+", row, binary("%", lane, 2 * COLUMNS)),
            binary("*", binary("//", lane, 2 * COLUMNS), const(COLUMNS)),
        )
        for block in range(0, self.rows, ROWS):
            for c in range(0, self.width, 2 * COLUMNS):
                first = self.c.place((block, column + c))[Axis.REGISTER]
                words = Place(self.registers, (const(first),), "r", "const u32")
                yield self.engines.store_matrices(
                    Place(self.stage, (self.near(block, c),), "w", window=True), words
                )

    @staticmethod
    def fits(c: Layout) -> bool:
        """Whether the words of four matrices are neighbours in the registers, in the order of the matrices."""
        wanted = {(0, 1): 1, (8, 0): 2, (0, 8): 4}
        return all(c.place(x).get(Axis.REGISTER, 0) == n for x, n in wanted.items())


@dataclass
class StagedRows(Staged):
    """Each thread writes whole rows, vector by vector."""

    def write(self, at: Expr, column: int) -> Iterator[Stmt]:
        vectors = self.context.instructions.vectors
        per = VECTOR * 8 // self.dtype.bits
        results = self.context.private("results", per, self.dtype)
        for block in range(0, self.rows, self.group):
            row = binary("+", binary("%", self.context.thread, self.group), block)
            for c in range(0, self.width, per):
                values = [self.value(block, column + c + e) for e in range(per)]
                first = self.element(at, row, const(c))
                if vectors is None or VECTOR not in vectors.widths:
                    for e, x in enumerate(values):
                        there = self.element(at, row, const(c + e))
                        yield Store(self.stage, (there,), cast(x, self.dtype), span=self.s.span)
                    continue
                if self.halves():
                    source = self.words
                    for n in range(per // 2):
                        yield from self.pack(n, *values[2 * n : 2 * n + 2])
                else:
                    source = results
                    for e, x in enumerate(values):
                        yield Store(results, (const(e),), cast(x, self.dtype), span=self.s.span)
                to = Place(self.stage, (first,), "w", aligned=VECTOR)
                yield vectors.move(to, Place(source, (const(0),), aligned=VECTOR), VECTOR)
