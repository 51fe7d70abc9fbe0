"""What a target has beyond plain loads, stores and arithmetic, as the lowering sees it: groups of instructions to invoke."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ...expr import Expr, Var
from ...program import Place, Stmt


class MatrixUnit(Protocol):
    """Matrix instructions that a subgroup runs on its registers, and the moves of their operands."""


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


class BulkEngines(Protocol):
    """Engines that copy boxes or multiply tiles by themselves, and the tokens that tell when they are done."""


@dataclass(frozen=True)
class Instructions:
    """The groups that a target has. None: it lacks them, and what is lowered has its generic form."""

    matrix: MatrixUnit | None = None
    vectors: VectorMoves | None = None
    bulk: BulkEngines | None = None
