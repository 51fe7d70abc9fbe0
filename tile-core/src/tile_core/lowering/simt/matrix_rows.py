"""Loads of 8x8 matrices: a fragment and a shared tile in, the row of the tile that each thread points at out."""

from __future__ import annotations

from dataclasses import dataclass

from ...expr import Expr, binary, const
from ...layout.layout import Axis, Iter, Layout, grouped, merged, positions, refined
from .context import Context
from .nest import low_digit

ROW_BITS = 128  # a row of a matrix: 16 aligned bytes
WORD_BITS = 32  # what one thread receives of a matrix
SIDE = 8  # rows of a matrix

Digits = tuple[tuple[Iter, int], ...]  # each with its place value


@dataclass(frozen=True)
class Matrices:
    """A fragment that consists of matrices, one word of each in every thread. ``per``: elements of a word.

    ``row``: the dimension along which the rows of a matrix follow each other in memory. ``digits``: of each dimension, those
    that tell one matrix from another. ``layout``: of the fragment. ``count``: matrices in all, numbered by the word that
    receives them.
    """

    row: int
    transposed: bool
    digits: tuple[Digits, Digits]
    per: int
    count: int
    layout: Layout


def as_matrices(fragment: Layout, along: int, bits: int, subgroup: int) -> Matrices | None:
    """The fragment as matrices whose rows run along dimension ``along``; None if it does not consist of such."""
    groups = grouped(fragment)
    if groups is None or len(groups) != 2 or bits not in (8, 16, 32):
        return None
    per = WORD_BITS // bits
    for transposed in (False, True) if bits == 16 else (False,):
        words = (
            1 - along if transposed else along
        )  # the elements of one word, and of four lanes, lie along it
        quad, rows = _parted(groups[words], 4 * per), _parted(groups[1 - words], SIDE)
        if quad is None or rows is None:
            continue
        if quad[1] != _quad(per) or rows[1] != (Iter(SIDE, 4, Axis.THREAD),):
            continue
        digits = (rows[0], quad[0]) if words else (quad[0], rows[0])
        if all(_outside(it, per, subgroup) for group in digits for it, _ in group):
            count = fragment.cosize(Axis.REGISTER) // per
            return Matrices(1 - along, transposed, digits, per, count, fragment)
    return None


def _quad(per: int) -> tuple[Iter, ...]:
    return merged((Iter(4, 1, Axis.THREAD), Iter(per, 1, Axis.REGISTER)))


def _parted(group: tuple[Iter, ...], size: int) -> tuple[Digits, tuple[Iter, ...]] | None:
    """The digits above the first ``size`` values, and those of these values."""
    digits = refined(group, [size])
    if digits is None:
        return None
    pairs = tuple(zip(digits, positions(digits), strict=True))
    high = tuple(p for p in pairs if p[1] >= size)
    return high, merged([it for it, place in pairs if place < size])


def _outside(it: Iter, per: int, subgroup: int) -> bool:
    """Whether a digit changes whole words, or the subgroup."""
    return it.extent == 1 or it.stride % (subgroup if it.axis is Axis.THREAD else per) == 0


def row_of(context: Context, matrices: Matrices, first: Expr, count: int) -> tuple[Expr, Expr]:
    """The element where the row of this thread begins, for a load of ``count`` matrices from number ``first`` on."""
    lane = binary("%", context.thread, SIDE)
    mine = binary("%", binary("//", context.thread, SIDE), count)
    register = binary("*", binary("+", first, mine), matrices.per)
    at = [_coordinate(context, matrices.layout, digits, register) for digits in matrices.digits]
    at[matrices.row] = binary("+", at[matrices.row], lane)
    return context.simple(at[0]), context.simple(at[1])


def _coordinate(context: Context, layout: Layout, digits: Digits, register: Expr) -> Expr:
    out: Expr = const(0)
    for it, place in digits:
        if it.extent == 1 or not it.stride:
            continue
        if it.axis is Axis.THREAD:
            value = low_digit(context, layout, it)
        else:
            value = binary("%", binary("//", register, it.stride), it.extent)
        out = binary("+", out, binary("*", context.simple(value), place))
    return out
