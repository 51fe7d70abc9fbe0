"""Subgroup matrices of WGSL as the lowering asks for them: calls that the printer knows, with the types of their matrices."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.dtypes import dtype
from tile_core.expr import const
from tile_core.hardware import Atom
from tile_core.program import Invoke, Place, Stmt

from ..atoms import MATRIX
from .scalars import Scalars

EXTENSION = "chromium_experimental_subgroup_matrix"
FEATURE = MATRIX
# that all lanes of a subgroup come to these calls together is known from the lowering, not from the text
TRUSTED = "diagnostic(off, chromium.subgroup_matrix_uniformity);"

CLEAR, LOAD, STORE, MULTIPLY = "matrix_clear", "matrix_load", "matrix_store", "matrix_multiply"
CALLS = (CLEAR, LOAD, STORE, MULTIPLY)
PREFIX = "subgroup_matrix_"
# name of the type, and which extents of (m, n, k) are its columns and rows
OPERANDS = {"a": ("left", 2, 0), "b": ("right", 1, 2), "c": ("result", 1, 0)}


@dataclass(frozen=True)
class SubgroupMatrices:
    """``WholeMatrices`` by the extension; ``atoms``: those that the target has."""

    atoms: tuple[Atom, ...]

    def has(self, atom: Atom) -> bool:
        return atom in self.atoms

    def clear(self, atom: Atom, c: Place) -> Stmt:
        return Invoke(CLEAR, (_typed(atom, "c", c),))

    def load(self, atom: Atom, operand: str, into: Place, source: Place, step: int, turned: bool) -> Stmt:
        order = const(turned)
        return Invoke(LOAD, (_typed(atom, operand, into), source, const(step), order))

    def store(self, atom: Atom, to: Place, c: Place, step: int) -> Stmt:
        return Invoke(STORE, (to, _typed(atom, "c", c), const(step)))

    def multiply(self, atom: Atom, c: Place, a: Place, b: Place) -> Stmt:
        return Invoke(MULTIPLY, (_typed(atom, "c", c), _typed(atom, "a", a), _typed(atom, "b", b)))


def _typed(atom: Atom, operand: str, place: Place) -> Place:
    """A place in an array of matrices, with the type of one."""
    name, columns, rows = OPERANDS[operand]
    element = Scalars(half=True).register(dtype(atom.types["abc".index(operand)]))
    text = f"{PREFIX}{name}<{element}, {atom.shape[columns]}, {atom.shape[rows]}>"
    return Place(place.buffer, place.indices, place.access, text)


def is_matrix(p: Place) -> bool:
    """Whether a place is a matrix, and not the elements in memory that one is loaded from or stored to."""
    return p.type.startswith(PREFIX)
