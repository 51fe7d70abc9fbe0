"""What a target has beyond plain loads, stores and arithmetic, as the lowering sees it: groups of instructions to invoke."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...dtypes import DType
from ...expr import Expr, Var
from ...hardware import Atom
from ...program import Place, Stmt
from .boxes import MatrixTask


class MatrixUnit(Protocol):
    """Matrix instructions that a subgroup runs on its registers, and the moves of their operands.

    A place names the first of a thread's registers of a piece, in the order of the atom's layouts.
    """

    @property
    def counts(self) -> tuple[int, ...]:
        """How many 8x8 matrices one load can bring, most first; () if there is no such load."""
        ...

    def has(self, atom: Atom) -> bool:
        """Whether there is a call for this instruction."""
        ...

    def multiply(self, atom: Atom, c: Place, a: Place, b: Place) -> Stmt:
        """``c += a b`` on one piece of each."""
        ...

    def load(self, count: int, transposed: bool, into: Place, row: Place) -> Stmt:
        """Bring ``count`` matrices of eight rows of 16 bytes from shared memory, one word of each to each thread.

        Thread ``8 q + r`` points at row r of matrix q. Thread t receives word t % 4 of row t // 4; ``transposed``: elements of
        16 bits, those of rows ``2 (t % 4)`` and the next in column t // 4.
        """
        ...

    def rounded(self, value: Expr, to: str, result: Var) -> Stmt | None:
        """``result`` becomes the register of an operand of type ``to`` that a wider value is rounded to; None: no such type."""
        ...


class WholeMatrices(Protocol):
    """Matrix instructions of a subgroup whose matrices move between memory and registers as wholes.

    A place in an array of matrices names one of them; where its elements are is nobody's business.
    """

    def has(self, atom: Atom) -> bool:
        """Whether there is a call for this instruction."""
        ...

    def clear(self, atom: Atom, c: Place) -> Stmt:
        """Zeros in one matrix of the accumulator."""
        ...

    def load(self, atom: Atom, operand: str, into: Place, source: Place, step: int, turned: bool) -> Stmt:
        """Bring a matrix of ``operand`` (a, b or c) from shared memory: rows are ``step`` elements apart; ``turned``: columns."""
        ...

    def store(self, atom: Atom, to: Place, c: Place, step: int) -> Stmt:
        """Write a matrix of the accumulator to shared memory, in rows that are ``step`` elements apart."""
        ...

    def multiply(self, atom: Atom, c: Place, a: Place, b: Place) -> Stmt:
        """``c += a b`` on one matrix of each."""
        ...


class ThreadCopies(Protocol):
    """Copies from global to shared memory that a thread starts and later waits for, in groups that end in order."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes that one copy may move, most first. Both addresses are multiples of it."""
        ...

    @property
    def run(self) -> int:
        """How many threads write side by side: all of them name one place, and thread t of the run writes t pieces behind it.

        With more than 1, every copy is a group of its own and nothing is committed; all runs must start as many copies.
        """
        ...

    def copy(self, size: int, to: Place, source: Place, taken: Expr | None) -> Stmt:
        """Start a copy. ``taken``: only so many bytes are read, the rest becomes zero; with 0 nothing is read."""
        ...

    def commit(self) -> Stmt:
        """The copies started since the last time are a group, even if there are none."""
        ...

    def wait(self, left: int) -> Stmt:
        """Wait until at most ``left`` of this thread's groups are not done."""
        ...


class VectorMoves(Protocol):
    """Loads and stores of several elements at once, and exchanges between the threads of a subgroup."""

    @property
    def widths(self) -> tuple[int, ...]:
        """Bytes that one move may have, widest first. Both of its places are multiples of them."""
        ...

    @property
    def subgroup(self) -> int:
        """Threads that exchange values; a power of two."""
        ...

    def move(self, to: Place, source: Place, size: int, inside: Expr | None = None) -> Stmt:
        """``size`` bytes from ``source`` to ``to``; zeros, and no access of ``source``, where ``inside`` is false."""
        ...

    def swap(self, value: Expr, distance: int, result: Var) -> Stmt:
        """``result`` is the ``value`` of the lane whose number differs by the bits of ``distance``. All lanes take part.

        ``value`` is of 32 or 64 bits.
        """
        ...

    def from_below(self, value: Expr, distance: int, result: Var) -> Stmt:
        """``result`` is the ``value`` of the lane ``distance`` before; of the lane itself where there is none."""
        ...

    def of_lane(self, value: Expr, lane: Expr, result: Var) -> Stmt:
        """``result`` is the ``value`` of lane number ``lane``."""
        ...


class Succession(Protocol):
    """Launches of which the next begins while the one before still runs."""

    def wait(self) -> Stmt:
        """Until the launch before is over and all that it wrote can be read."""
        ...

    def release(self) -> Stmt:
        """From here on the next launch may begin; it waits before it touches memory."""
        ...


class Dots(Protocol):
    """Instructions of a thread that add the products of a few small integers."""

    def width(self, a: DType, b: DType, c: DType) -> int:
        """How many products of ``a`` and ``b`` one instruction adds to a ``c``; 0 if there is none."""
        ...

    def dot(self, a: Place, b: Place, c: Expr, result: Var) -> Stmt:
        """``result`` is ``c`` and the products of as many neighbours as go into one word of each operand."""
        ...


class Updates(Protocol):
    """Atomic updates of neighbouring elements of a tensor that give nothing back; each element is updated by itself."""

    def widths(self, op: str, dtype: DType) -> tuple[int, ...]:
        """How many elements one update may have, most first; its place is a multiple of their bytes. () if there is none."""
        ...

    def update(self, op: str, to: Place, values: Place, count: int) -> Stmt:
        """``to op= values`` for ``count`` elements; the values are in registers."""
        ...


class BulkEngines(Protocol):
    """Engines that copy boxes or multiply tiles by themselves, and the tokens that tell when they are done.

    A token is a 64-bit word in shared memory: it counts arrivals and bytes, and flips its phase when all have come.
    Engines are named as in ``TargetInfo.engines``: ``copy``, ``store``, ``tensor``.
    """

    @property
    def stores_boxes(self) -> bool:
        """Whether results may leave through the copy engine."""
        ...

    # Tokens.

    def prepare(self, tokens: Iterable[tuple[Place, int]]) -> Iterable[Stmt]:
        """One thread sets up tokens (and how many arrive at each), so that threads and engines see them after a barrier."""
        ...

    def expect(self, token: Place, bytes: int) -> Stmt:
        """Arrive, and let the phase also wait for so many bytes of bulk copies."""
        ...

    def arrive(self, token: Place) -> Stmt: ...

    def arrive_at(self, token: Place, rank: Expr) -> Iterable[Stmt]:
        """Arrive at the token at this place of another of the blocks that share copies."""
        ...

    def meet(self) -> Stmt:
        """All threads of all blocks that share copies wait for each other."""
        ...

    def wait(self, token: Place, parity: Expr) -> Stmt:
        """Until the phase of that parity (0 or 1, an ``int32``) is over."""
        ...

    # Copies.

    def load(
        self,
        box: Var,
        start: Sequence[Expr],
        into: Place,
        token: Place,
        blocks: int = 1,
        hint: Var | None = None,
    ) -> Stmt:
        """Copy one box into shared memory; its bytes arrive at ``token``. ``start``: by dimension, outermost first.

        ``blocks``: of so many blocks that share copies each gets the box, at the same places. ``hint``: of ``keep``.
        """
        ...

    def keep(self, again: bool, result: Var) -> Stmt:
        """``result`` is a hint (a ``uint64``) for the last cache: what is copied is read ``again`` soon, or never."""
        ...

    def store(self, box: Var, start: Sequence[Expr], source: Place) -> Stmt:
        """Copy one box from shared memory; it belongs to the next group that is committed."""
        ...

    def add(self, box: Var, start: Sequence[Expr], source: Place) -> Stmt:
        """Add one box in shared memory to a tensor, each element atomically; it belongs to the next group of stores."""
        ...

    def commit(self, engine: str) -> Stmt: ...

    def settle(self, engine: str, pending: int) -> Stmt:
        """Until at most so many of this thread's groups still work (``store``: still read)."""
        ...

    def visible(self) -> Stmt:
        """Engines that start after the next barrier can read what this thread wrote to shared memory, and write what it read."""
        ...

    # Matrix engine.

    def multiply(self, task: MatrixTask) -> Iterable[Stmt]:
        """Start the products and commit them as one group."""
        ...

    def hold(self, registers: Place, count: int, dtype: DType) -> Stmt:
        """Registers that the engine wrote may be used from here on: keeps the compiler from moving uses before the wait."""
        ...

    def zero(self, registers: Place, count: int, dtype: DType) -> Stmt:
        """Zeros in registers that the engine adds to."""
        ...

    # Threads.

    def uniform(self, value: Expr, result: Var) -> Stmt:
        """``result`` is ``value``, which all threads of a subgroup agree on."""
        ...

    def elected(self, result: Var) -> Stmt:
        """``result`` is true in one thread of the subgroup."""
        ...

    def subgroup_sync(self) -> Stmt: ...

    def somewhere(self, condition: Expr, number: Expr, threads: int, result: Var) -> Stmt:
        """``result`` is whether the condition holds in any of so many threads, which meet at barrier ``number``."""
        ...

    def arrive_only(self, number: Expr, threads: int) -> Stmt:
        """Arrive at a barrier where so many threads are awaited, without waiting there."""
        ...

    def registers(self, count: int, more: bool) -> Stmt:
        """The threads of this group have so many registers from here on: more or fewer than they had."""
        ...

    def pack(self, low: Expr, high: Expr, dtype: DType, result: Var) -> Stmt:
        """Two float32 values rounded to a 16-bit type, as one word."""
        ...

    def store_matrices(self, to: Place, words: Place) -> Stmt:
        """A subgroup stores four 8x8 matrices of 16 bits: four words of each thread, to rows whose addresses the threads give."""
        ...


class SumsMemory(Protocol):
    """A memory in which the matrix engine adds up: rows of a group's threads, columns of 32 bits. Addresses are ``uint32``.

    One thread of a group starts products; others are told by a token. All moves are by whole subgroups, each its own rows.
    """

    @property
    def widest(self) -> int:
        """Columns that one move may have; powers of two up to it."""
        ...

    def reserve(self, columns: int, to: Place) -> Iterable[Stmt]:
        """A subgroup takes so many columns, a power of two; their address is written to shared memory, seen after a barrier."""
        ...

    def where(self, at: Place, result: Var) -> Stmt:
        """``result`` is the address that ``reserve`` wrote."""
        ...

    def release(self, base: Expr, columns: int) -> Iterable[Stmt]:
        """The subgroup that took columns gives them back."""
        ...

    def finish(self, token: Place) -> Stmt:
        """The engine arrives at the token when all products that this thread has started are done."""
        ...

    def load(self, cells: Expr, registers: Place, count: int) -> Stmt: ...

    def loaded(self) -> Stmt:
        """Until what this thread loads is in its registers."""
        ...

    def store(self, cells: Expr, registers: Place, count: int) -> Stmt: ...

    def stored(self) -> Stmt:
        """Until what this thread stores is in the memory."""
        ...

    def before(self) -> Stmt:
        """What this thread did with the memory is ordered before a barrier that follows."""
        ...

    def after(self) -> Stmt:
        """What this thread does with the memory is ordered after a barrier or wait that precedes."""
        ...


@dataclass(frozen=True)
class Instructions:
    """The groups that a target has. None: it lacks them, and what is lowered has its generic form."""

    matrix: MatrixUnit | None = None
    wholes: WholeMatrices | None = None
    copies: ThreadCopies | None = None
    vectors: VectorMoves | None = None
    updates: Updates | None = None
    dots: Dots | None = None
    succession: Succession | None = None
    bulk: BulkEngines | None = None
    sums: SumsMemory | None = None
