"""Sums from registers to a tile in shared memory, rounded, as 8x8 matrices: an operand of the next product.

What was rounded before is stored as it is.

Four matrices go with one instruction and one address of each thread, where stores of pairs would take eight (PTX ISA, stmatrix).
"""

from __future__ import annotations

from collections.abc import Iterator

from ...expr import Buffer, Expr, Space, binary, const
from ...inference.model import GemmChoice
from ...inference.problem import is_whole
from ...layout.layout import Axis, Layout, grouped, same
from ...program import Copy, Stmt
from .context import Context
from .instructions import BulkEngines
from .staged_results import COLUMNS, ROWS, StagedMatrices, StagedWords, rows_of_threads


def matrix_store(
    context: Context, engines: BulkEngines, s: Copy, group: Expr, groups: int
) -> Iterator[Stmt] | None:
    """The statements of a copy from an accumulator, of which each of ``groups`` holds whole rows; None if it is no such copy."""
    tile, sums = s.dst.buffer, s.src.buffer
    choice = _made_by(context, sums, groups) if is_whole(s.src) and is_whole(s.dst) else None
    layout = context.layouts.get(tile)
    if choice is None or layout is None or tile.space is not Space.SHARED or tile.shape != sums.shape:
        return None
    words = sums.dtype == tile.dtype and StagedWords.fits(choice.c)
    if not (words or sums.dtype.name == "float32") or rows_of_threads(choice.c):
        return None
    if not _matrices(tile, layout):
        return None
    rows = choice.c.shape[0] // groups
    registers, flat = context.register_file(sums), context.tiles[tile]
    first = context.simple(binary("*", group, rows))
    kind = StagedWords if words else StagedMatrices
    staged = kind(context, engines, choice.c, layout, registers, flat, s, first, rows)
    return staged.write(context.slots.get(tile, const(0)), 0)


def _made_by(context: Context, sums: Buffer, groups: int) -> GemmChoice | None:
    """How the fragment was made, if each group holds whole rows of it."""
    rules, layout = context.plan.info.bulk, context.plan.layouts.get(sums)
    for choice in context.plan.atoms.values() if rules and layout and not layout.padded else ():
        on_engine = choice.atom is not None and choice.atom.threads == (rules.group if rules else 0)
        if on_engine and layout is not None and same(choice.c, layout) and choice.warps == (groups, 1):
            return choice if choice.c.shape[0] % (ROWS * groups) == 0 else None
    return None


def _matrices(tile: Buffer, layout: Layout) -> bool:
    """Whether rows of matrices lie together, also behind the swizzle."""
    groups = grouped(layout)
    if tile.source is not None or tile.ndim != 2 or not tile.dtype.is_float or tile.dtype.bits != 16:
        return False
    if groups is None or layout.padded or layout.shape[1] % (2 * COLUMNS):
        return False
    last = groups[1][-1]
    together = last.axis is Axis.MEMORY and last.stride == 1 and last.extent % COLUMNS == 0
    kept = all((c ^ 1 << n) % COLUMNS == 0 for n, c in enumerate(layout.swizzle.columns))
    return together and kept
