"""The graph as a self-contained SVG: nodes from top to bottom, regions as boxes, edges labelled with what flows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from html import escape

from .nodes import Edge, Graph
from .text import child_towards, loop_text, op_text, value_text

NODE_WIDTH, NODE_HEIGHT, GAP, PAD, HEAD = 330, 40, 14, 12, 22
LANE = 14  # between the vertical lines of edges
FILL = {
    "copy": "#dbeafe",
    "gemm": "#fde68a",
    "reduce": "#ddd6fe",
    "scan": "#ddd6fe",
    "fill": "#e5e7eb",
    "parallel": "#d1fae5",
    "atomic": "#fecaca",
}
LINE = {"raw": "#1f2937", "war": "#9ca3af", "waw": "#d1d5db"}
STYLE = (
    "text{font:12px ui-monospace,Menlo,monospace;fill:#111827}.s{font-size:10px;fill:#4b5563}"
    ".r{fill:none;stroke:#9ca3af;rx:6}.n{stroke:#374151;rx:4}.l{fill:none}"
)


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a node is drawn, in pixels."""

    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Trunk:
    """All edges that bring one value from one node to its users: one vertical line with a branch to each."""

    source: str
    edges: tuple[Edge, ...]


def draw(graph: Graph, kinds: tuple[str, ...] = ("raw",)) -> str:
    """An SVG document. ``kinds`` of edges are drawn; carried ones are dashed and may go back up."""
    spots: dict[str, Spot] = {}
    parts: list[str] = []
    bottom = _region(graph, "", PAD, PAD + HEAD, spots, parts)
    trunks = _trunks(graph, kinds)
    lanes = _lanes(trunks, {name: k for k, name in enumerate(spots)})
    right = PAD + NODE_WIDTH + 2 * PAD * max((_depth(graph, r.name) for r in graph.loops), default=0)
    labels = right + LANE * (max(lanes, default=0) + 2)
    below: Counter[str] = Counter()
    for trunk, lane in zip(trunks, lanes, strict=True):
        parts.append(_trunk(trunk, spots, right + LANE * (lane + 1), labels, below[trunk.source]))
        below[trunk.source] += 1
    title = f'<text x="{PAD}" y="{PAD + 12}">{escape(graph.program.name)}</text>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{labels + 260}" height="{bottom + PAD}">'
    return "\n".join((head, f"<style>{STYLE}</style>", ARROW, title, *parts, "</svg>")) + "\n"


def _trunks(graph: Graph, kinds: tuple[str, ...]) -> list[Trunk]:
    groups: dict[tuple[str, str, str], list[Edge]] = {}
    for e in graph.edges:
        if e.kind in kinds and e.source != e.target:
            groups.setdefault((e.source, e.kind, value_text(e.buffer)), []).append(e)
    return [Trunk(source, tuple(edges)) for (source, _, _), edges in groups.items()]


ARROW = (
    '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L8 4L0 8z" fill="#374151"/></marker></defs>'
)


def _region(graph: Graph, name: str, x: int, y: int, spots: dict[str, Spot], parts: list[str]) -> int:
    """Draw what is inside a region from (x, y) down; returns the first free y."""
    done: set[str] = set()
    for node in graph.nodes:
        inner = child_towards(graph, node.loop, name)
        if inner == "":
            spots[node.name] = Spot(x, y)
            parts.append(_node(node.name, node.kind, op_text(node), x, y))
            y += NODE_HEIGHT + GAP
        elif inner is not None and inner not in done:
            done.add(inner)
            at = len(parts)
            end = _region(graph, inner, x + PAD, y + HEAD, spots, parts)
            width = NODE_WIDTH + 2 * PAD * _depth(graph, inner)
            parts.insert(at, _box(loop_text(graph.loop(inner)), x, y, width, end - y))
            y = end + GAP
    return y


def _depth(graph: Graph, name: str) -> int:
    """Levels of regions from ``name`` down to the innermost."""
    inside = [_depth(graph, r.name) for r in graph.loops if r.parent == name]
    return 1 + max(inside, default=0)


def _box(label: str, x: int, y: int, width: int, height: int) -> str:
    return (
        f'<rect class="r" x="{x}" y="{y}" width="{width}" height="{height}"/>'
        f'<text class="s" x="{x + 6}" y="{y + 14}">{escape(_cut(label, 60))}</text>'
    )


def _node(name: str, kind: str, label: str, x: int, y: int) -> str:
    return (
        f'<g><title>{escape(label)}</title><rect class="n" x="{x}" y="{y}" width="{NODE_WIDTH}" '
        f'height="{NODE_HEIGHT}" fill="{FILL.get(kind, "#f3f4f6")}"/>'
        f'<text x="{x + 8}" y="{y + 16}">{escape(name)}</text>'
        f'<text class="s" x="{x + 8}" y="{y + 31}">{escape(_cut(label, 52))}</text></g>'
    )


def _cut(label: str, limit: int) -> str:
    return label if len(label) <= limit else label[: limit - 1] + "…"


def _lanes(trunks: list[Trunk], order: dict[str, int]) -> list[int]:
    """A vertical line for each trunk, so that lines that overlap do not share one."""
    taken: list[list[tuple[int, int]]] = []
    out: list[int] = []
    for t in trunks:
        rows = [order[t.source], *(order[e.target] for e in t.edges)]
        low, high = min(rows), max(rows)
        free = next(
            (k for k, used in enumerate(taken) if all(high < a or b < low for a, b in used)), len(taken)
        )
        if free == len(taken):
            taken.append([])
        taken[free].append((low, high))
        out.append(free)
    return out


def _trunk(t: Trunk, spots: dict[str, Spot], lane: int, label: int, row: int) -> str:
    """The line of a value, its branches, and what it is at the right margin."""
    a, kind = spots[t.source], t.edges[0].kind
    start = a.y + NODE_HEIGHT - 10 - 11 * row
    out = [f'<path class="l" d="M{a.x + NODE_WIDTH} {start}H{label - 4}" stroke="#e5e7eb"/>']
    out.append(f'<path class="l" d="M{a.x + NODE_WIDTH} {start}H{lane}" stroke="{LINE[kind]}"/>')
    for e in t.edges:
        b = spots[e.target]
        dash = ' stroke-dasharray="4 3"' if e.carried else ""
        path = f"M{lane} {start}V{b.y + 10}H{b.x + NODE_WIDTH + 2}"
        out.append(f'<path class="l" d="{path}" stroke="{LINE[kind]}"{dash} marker-end="url(#a)"/>')
    name = value_text(t.edges[0].buffer) + ("" if kind == "raw" else f" ({kind})")
    out.append(f'<text class="s" x="{label}" y="{start + 3}">{escape(name)}</text>')
    return "".join(out)
