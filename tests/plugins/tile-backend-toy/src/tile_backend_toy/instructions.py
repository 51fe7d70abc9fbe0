"""The toy's matrix instruction: as data for the inference, as a call for the lowering."""

from __future__ import annotations

from tile_core.expr import Expr, Var
from tile_core.hardware import Atom
from tile_core.layout.digits import lane, reg, tile
from tile_core.lowering.simt.instructions import Instructions
from tile_core.program import Invoke, Place, Stmt

# Lane 4 r + q holds four elements of row r of a, of column r of b, and two of row r of c.
A = tile((8, 16), (lane(8, 4),), (lane(4), reg(4)))
B = tile((16, 8), (lane(4), reg(4)), (lane(8, 4),))
C = tile((8, 8), (lane(8, 4),), (lane(4), reg(2)))
TYPES = ("float16", "float16", "float32")
MULTIPLY = "toy_multiply"
ATOMS = (
    Atom(
        MULTIPLY,
        (8, 8, 16),
        32,
        TYPES,
        *(A, B, lambda _: C),
        rate=1024,  # operations per clock and core
        engine="matrix",
        source="matrix.cpp",
    ),
)


class ToyMatrixUnit:
    """``toy_multiply``: 8x8 sums of 16 products each, by the lanes of a subgroup."""

    counts = ()  # no load that brings matrices to lanes

    def has(self, atom: Atom) -> bool:
        return atom in ATOMS

    def multiply(self, atom: Atom, c: Place, a: Place, b: Place) -> Stmt:
        return Invoke(MULTIPLY, (c, a, b))

    def load(self, count: int, transposed: bool, into: Place, row: Place) -> Stmt:
        raise AssertionError("`counts` is empty: nothing asks for it")

    def rounded(self, value: Expr, to: str, result: Var) -> Stmt | None:
        return None


INSTRUCTIONS = Instructions(matrix=ToyMatrixUnit())
