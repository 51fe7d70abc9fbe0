"""What lowering tells a target about its bulk engines: boxes of tensors, operands and tasks of the matrix engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...expr import Buffer, Expr
from ...inference.model import GemmChoice
from ...layout.layout import Layout
from ...program import Stmt


@dataclass(frozen=True, slots=True)
class BoxMap:
    """How the copy engine sees a tensor: the extents of a box by dimension, outermost first, and the span of the tile's swizzle.

    ``passing``: what it brings is not read again soon, so that more than was asked for has no place in a cache.
    """

    tensor: Buffer
    box: tuple[int, ...]
    span: int
    passing: bool = False


@dataclass(frozen=True, slots=True)
class Operand:
    """A matrix operand: a tile at element ``offset`` of ``buffer``, as it is stored.

    ``layout`` has two dimensions. In shared memory it gives elements before the swizzle; in registers (``held``) it is over
    (thread, register). ``flipped``: a is stored (k, m), or b as (n, k).
    """

    buffer: Buffer
    offset: Expr
    layout: Layout
    flipped: bool = False
    held: bool = False


@dataclass(frozen=True, slots=True)
class MatrixTask:
    """``c += a b`` on the matrix engine by all groups of the block. ``group``: this thread's group.

    ``accumulate``: whether what c holds takes part; only the first products along k ask. ``number`` is the task's own.
    ``arriving``: what is done in front of products along k, by the element of k that they begin at.
    ``sums``: where this group's sums are in the engine's own memory, None if they are in the registers of c.
    """

    choice: GemmChoice
    shape: tuple[int, int, int]
    a: Operand
    b: Operand
    c: Operand
    group: Expr
    accumulate: Expr
    number: int
    sums: Expr | None = None
    arriving: Mapping[int, tuple[Stmt, ...]] = field(default_factory=dict[int, "tuple[Stmt, ...]"])
