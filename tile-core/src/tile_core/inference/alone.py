"""Which products the matrix engine can do by itself: from what inference decided about a gemm and its tiles."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ..expr import Buffer, Const, Space
from ..graph import Graph, Node
from ..hardware import BulkRules
from ..layout.layout import Axis, Layout, grouped
from ..layout.panels import CHUNK_BITS
from ..program import For, Gemm, Region
from .model import GemmChoice
from .rules.gemm import flipped

ROWS = 8  # of the blocks that tiles in shared memory are made of for matrix engines
Layouts = Mapping[Buffer, Layout]


def runs_alone(s: Gemm, choice: GemmChoice | None, layouts: Layouts, rules: BulkRules) -> bool:
    """Whether the operands are tiles or parts of them where and as the engine reads them, and c is its accumulator."""
    if choice is None or choice.atom is None or choice.atom.threads != rules.group:
        return False
    if not s.c.whole or layouts.get(s.c.buffer) != choice.c or choice.c.padded:
        return False
    if s.b.buffer.space is not Space.SHARED or not _readable(layouts, s.b, 0 if s.transpose_b else choice.n):
        return False
    if s.a.buffer.space is Space.SHARED:
        rows = choice.atom.shape[0] if s.transpose_a else 0
        return choice.atom.shared_a and _readable(layouts, s.a, rows)
    held = s.a.whole and s.a.buffer.space is Space.FRAGMENT
    return held and choice.a is not None and layouts.get(s.a.buffer) == _held(choice.a, s)


def adds_alone(graph: Graph, product: Node) -> bool:
    """Whether in the loop right around a product nothing else reads or writes its sums."""
    if not product.loop or not isinstance(graph.loop(product.loop).stmt, For):
        return True
    c = set(product.writes)
    others = (n for n in graph.nodes if n is not product and c & {*n.reads, *n.writes})
    return not any(_inside(graph, n.loop, product.loop) for n in others)


def _inside(graph: Graph, region: str, loop: str) -> bool:
    while region and region != loop:
        region = graph.loop(region).parent
    return region == loop


def _held(a: Layout, s: Gemm) -> Layout:
    return flipped(a) if s.transpose_a else a


def begins(layout: Layout, r: Region) -> int | None:
    """The element, before the swizzle, at which a part of a tile begins that lies as if the tile began there.

    None: its place is only known when the kernel runs, an index is carried into another digit, or the swizzle is another one.
    """
    if r.whole:
        return 0
    start = [s.value for s in r.start if isinstance(s, Const) and isinstance(s.value, int)]
    groups = grouped(layout)
    if groups is None or any(r.point) or len(start) < len(groups):
        return None
    if any(s % prod(i.extent for i in digits[1:]) for s, digits in zip(start, groups, strict=True)):
        return None
    at = Layout(layout.shape, layout.iters).place(start).get(Axis.MEMORY, 0)
    return None if at % (1 << len(layout.swizzle.columns)) else at


def may_be_readable(r: Region) -> bool:
    """Whether some layout of the tile lets the engine read the operand: asked before there is one."""
    if r.buffer.space is not Space.SHARED:
        return True
    if r.buffer.source is not None or r.buffer.ndim != 2:
        return False
    units = ROWS, CHUNK_BITS // r.dtype.bits
    return r.whole or all(
        isinstance(s, Const) and s.value % u == 0 for s, u in zip(r.start, units, strict=True)
    )


def _readable(layouts: Layouts, r: Region, unit: int) -> bool:
    """A part of a tile with a layout of its own, in which operands that are ``unit`` columns apart begin panels."""
    layout = layouts.get(r.buffer)
    if not may_be_readable(r) or layout is None or layout.padded:
        return False
    groups = grouped(layout)
    return groups is not None and unit % groups[1][-1].extent == 0 and begins(layout, r) is not None
