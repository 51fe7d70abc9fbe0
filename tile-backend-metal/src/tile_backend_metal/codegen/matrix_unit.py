"""Simdgroup matrices for the lowering: atoms and places in, calls of a function on registers out; and its text.

The lowering keeps fragments in registers of its own, whose order is the atom's layout, and they enter and leave a matrix by
``thread_elements()``. Apple does not document which element of a matrix that is in which lane: everything here relies on the order
of the atom table, so the launcher compares it with what the device does before the first kernel that has such a call.
"""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.expr import Expr, Var
from tile_core.hardware import Atom
from tile_core.program import Invoke, Place, Stmt

from .moves import LANES

MULTIPLY = "tile_simdgroup_multiply"

# MSL 6.7: operands and sums may differ in type
TEXT = r"""
template <class C, class A> TILE_DEVICE void tile_simdgroup_multiply(thread C* c, const thread A* a, const thread A* b) {
  metal::simdgroup_matrix<A, 8, 8> left, right;
  metal::simdgroup_matrix<C, 8, 8> sum;
  left.thread_elements()[0] = a[0];
  left.thread_elements()[1] = a[1];
  right.thread_elements()[0] = b[0];
  right.thread_elements()[1] = b[1];
  sum.thread_elements()[0] = c[0];
  sum.thread_elements()[1] = c[1];
  metal::simdgroup_multiply_accumulate(sum, left, right, sum);
  c[0] = sum.thread_elements()[0];
  c[1] = sum.thread_elements()[1];
}
"""


@dataclass(frozen=True)
class SimdgroupMatrixUnit:
    """``simdgroup_multiply_accumulate``. ``counts``: there is no load of matrices by rows that each thread points at."""

    counts: tuple[int, ...] = ()

    def has(self, atom: Atom) -> bool:
        return atom.threads == LANES and atom.shape == (8, 8, 8)

    def multiply(self, atom: Atom, c: Place, a: Place, b: Place) -> Stmt:
        return Invoke(MULTIPLY, (c, a, b))

    def load(self, count: int, transposed: bool, into: Place, row: Place) -> Stmt:
        raise AssertionError("`counts` is empty: nothing asks for it")

    def rounded(self, value: Expr, to: str, result: Var) -> Stmt | None:
        return None
