"""The matrix instructions of a wave for the lowering: atoms and places in, calls of helpers out."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.errors import InternalError
from tile_core.expr import Expr, Var
from tile_core.hardware import Atom
from tile_core.program import Invoke, Place, Stmt

from ..prelude.matrix import helper_name
from ..prelude.table import table


@dataclass(frozen=True)
class WaveMatrixUnit:
    """MFMA or WMMA of a wave of ``lanes``. There are no loads of 8x8 matrices: lanes read runs along k by themselves."""

    lanes: int
    counts: tuple[int, ...] = ()

    def has(self, atom: Atom) -> bool:
        return atom.threads == self.lanes and helper_name(atom.name) in table()

    def multiply(self, atom: Atom, c: Place, a: Place, b: Place) -> Stmt:
        return Invoke(helper_name(atom.name), (c, a, b))

    def load(self, count: int, transposed: bool, into: Place, row: Place) -> Stmt:
        raise InternalError("a load of matrices was asked for, which this unit does not offer")

    def rounded(self, value: Expr, to: str, result: Var) -> Stmt | None:
        return Invoke("round_xf32", (value,), result) if to == "tfloat32" else None
