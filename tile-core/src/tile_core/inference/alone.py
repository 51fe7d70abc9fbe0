"""Which products the matrix engine can do by itself: from what inference decided about a gemm and its tiles."""

from __future__ import annotations

from collections.abc import Mapping

from ..expr import Buffer, Space
from ..graph import Graph, Node
from ..hardware import BulkRules
from ..layout.layout import Layout, grouped
from ..program import For, Gemm, Region
from .model import GemmChoice
from .rules.gemm import flipped

Layouts = Mapping[Buffer, Layout]


def runs_alone(s: Gemm, choice: GemmChoice | None, layouts: Layouts, rules: BulkRules) -> bool:
    """Whether the operands are whole tiles where and as the engine reads them, and c is its accumulator."""
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


def _readable(layouts: Layouts, r: Region, unit: int) -> bool:
    """A whole tile of two dimensions with a layout of its own, in which operands that are ``unit`` columns apart begin panels."""
    layout = layouts.get(r.buffer)
    if (
        not r.whole
        or r.buffer.source is not None
        or layout is None
        or len(layout.shape) != 2
        or layout.padded
    ):
        return False
    groups = grouped(layout)
    return groups is not None and unit % groups[1][-1].extent == 0
