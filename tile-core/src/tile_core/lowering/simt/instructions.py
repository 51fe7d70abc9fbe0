"""What a target has beyond plain loads, stores and arithmetic, as the lowering sees it: groups of instructions to invoke."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...dtypes import DType
from ...expr import Expr, Var
from ...program import Place, Stmt
from .boxes import MatrixTask


class MatrixUnit(Protocol):
    """Matrix instructions that a subgroup runs on its registers, and the moves of their operands."""


class VectorMoves(Protocol):
    """Loads and stores of several elements at once, and exchanges between the threads of a subgroup."""


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

    def load(self, box: Var, start: Sequence[Expr], into: Place, token: Place, blocks: int = 1) -> Stmt:
        """Copy one box into shared memory; its bytes arrive at ``token``. ``start``: by dimension, outermost first.

        ``blocks``: of so many blocks that share copies each gets the box, at the same places.
        """
        ...

    def store(self, box: Var, start: Sequence[Expr], source: Place) -> Stmt:
        """Copy one box from shared memory; it belongs to the next group that is committed."""
        ...

    def commit(self, engine: str) -> Stmt: ...

    def settle(self, engine: str, pending: int) -> Stmt:
        """Until at most so many of this thread's groups still work (``store``: still read)."""
        ...

    def visible(self) -> Stmt:
        """What this thread wrote to shared memory can be read by engines that are started after the next barrier."""
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

    def registers(self, count: int, more: bool) -> Stmt:
        """The threads of this group have so many registers from here on: more or fewer than they had."""
        ...

    def pack(self, low: Expr, high: Expr, dtype: DType, result: Var) -> Stmt:
        """Two float32 values rounded to a 16-bit type, as one word."""
        ...

    def store_matrices(self, to: Place, words: Place) -> Stmt:
        """A subgroup stores four 8x8 matrices of 16 bits: four words of each thread, to rows whose addresses the threads give."""
        ...


@dataclass(frozen=True)
class Instructions:
    """The groups that a target has. None: it lacks them, and what is lowered has its generic form."""

    matrix: MatrixUnit | None = None
    vectors: VectorMoves | None = None
    bulk: BulkEngines | None = None
