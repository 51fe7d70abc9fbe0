"""The matrix instructions of a warp for the lowering: atoms and places in, calls of ``mma`` and ``ldmatrix`` helpers out."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tile_core.expr import Expr, Var
from tile_core.hardware import Atom
from tile_core.program import Invoke, Place, Stmt

from ..atoms import SHORT
from ..prelude.matrix import atom_helper, register_of
from ..prelude.table import find

ROUNDING = {"tfloat32": "tf32_from_f32"}
LANES = 32


@dataclass(frozen=True)
class WarpMatrixUnit:
    """``mma.sync``. ``counts``: matrices that one ``ldmatrix`` can bring."""

    counts: tuple[int, ...] = (4, 2, 1)

    def has(self, atom: Atom) -> bool:
        return atom.threads == LANES and find(atom_helper(atom.name)) is not None

    def multiply(self, atom: Atom, c: Place, a: Place, b: Place) -> Stmt:
        sums = _typed(c, atom.types[2])
        given = (sums, _typed(a, atom.types[0]), _typed(b, atom.types[1]), sums)
        return Invoke(atom_helper(atom.name), given)

    def load(self, count: int, transposed: bool, into: Place, row: Place) -> Stmt:
        name = f"ldmatrix_x{count}{'_trans' if transposed else ''}"
        return Invoke(name, (replace(into, type="u32"), row))

    def rounded(self, value: Expr, to: str, result: Var) -> Stmt | None:
        helper = ROUNDING.get(to)
        return None if helper is None else Invoke(helper, (value,), result)


def _typed(p: Place, type: str) -> Place:
    """Registers as the helper takes them: floats, integers and doubles as such, narrower values packed in words."""
    kind = register_of(SHORT[type])[0]
    return replace(p, type=kind) if kind == "u32" else p
