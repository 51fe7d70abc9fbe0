"""What a target has beyond plain loads, stores and arithmetic, as the lowering sees it: groups of instructions to invoke."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class MatrixUnit(Protocol):
    """Matrix instructions that a subgroup runs on its registers, and the moves of their operands."""


class VectorMoves(Protocol):
    """Loads and stores of several elements at once, and exchanges between the threads of a subgroup."""


class BulkEngines(Protocol):
    """Engines that copy boxes or multiply tiles by themselves, and the tokens that tell when they are done."""


@dataclass(frozen=True)
class Instructions:
    """The groups that a target has. None: it lacks them, and what is lowered has its generic form."""

    matrix: MatrixUnit | None = None
    vectors: VectorMoves | None = None
    bulk: BulkEngines | None = None
