"""Tiles that a product begins to read while the rest of them still arrives.

Where a tile comes in panels of columns along which a product sums, the product waits for each panel just before it reads it. Where
all groups do the same, deep rings hide what a copy takes; it is for teams, whose tiles have one slot.
"""

from __future__ import annotations

from ...program import Gemm, Stmt
from ...program.visit import written_buffers
from ..bulk import BoxCopy


def panels(copy: Stmt, boxes: BoxCopy | None, reader: Stmt) -> int:
    """In how many parts ``reader`` may wait for what a copy brings; 1: for all of it."""
    count = len({p.shift[-1] for p in boxes.pieces}) if boxes else 1
    along = isinstance(reader, Gemm) and _along(reader, copy)
    return count if along else 1


def _along(product: Gemm, copy: Stmt) -> bool:
    """Whether a product sums along the rows of the whole tile that a copy fills, and reads it once."""
    filled = {b.storage for b in written_buffers(copy)}
    operands = ((product.a, not product.transpose_a), (product.b, product.transpose_b))
    found = [r.whole and along for r, along in operands if r.buffer.storage in filled]
    return found == [True]
