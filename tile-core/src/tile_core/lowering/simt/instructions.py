"""What a target has beyond plain loads, stores and arithmetic, as the lowering sees it: groups of instructions to invoke."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ...expr import Expr, Var
from ...hardware import Atom
from ...program import Place, Stmt


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


class ThreadCopies(Protocol):
    """Copies from global to shared memory that a thread starts and later waits for, in groups that end in order."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes that one copy may move, most first. Both addresses are multiples of it."""
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


class BulkEngines(Protocol):
    """Engines that copy boxes or multiply tiles by themselves, and the tokens that tell when they are done."""


@dataclass(frozen=True)
class Instructions:
    """The groups that a target has. None: it lacks them, and what is lowered has its generic form."""

    matrix: MatrixUnit | None = None
    copies: ThreadCopies | None = None
    vectors: VectorMoves | None = None
    bulk: BulkEngines | None = None
