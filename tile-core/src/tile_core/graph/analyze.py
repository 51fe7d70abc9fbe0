"""What a graph costs before any target is chosen: operations, bytes moved, memory and lifetimes, per node and per launch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..expr import Binary, Buffer, Call, Expr, Space, walk
from ..program import (
    AtomicTile,
    Copy,
    Fill,
    For,
    Gemm,
    If,
    Launch,
    Parallel,
    Quantify,
    Reduce,
    Scan,
    Stmt,
    Transpose,
)
from ..program.visit import (
    bodies,
    buffers,
    expressions,
    read_buffers,
    read_regions,
    written_buffers,
    written_regions,
)
from .amount import Amount, amount, known, plus, times
from .nodes import Graph, Node

Bytes = Mapping[Space, Amount]


@dataclass(frozen=True)
class NodeFacts:
    """One node. ``flops`` and ``bytes`` are of one execution in one block; ``times``: executions over the whole launch.

    ``bytes``: read and written, by space. ``footprint``: bytes of the storage it touches, by space.
    ``certain``: no ``While`` and no ``If`` around it makes ``times`` a guess.
    """

    name: str
    flops: Amount
    bytes: Bytes
    footprint: Bytes
    times: Amount
    certain: bool = True


@dataclass(frozen=True)
class Life:
    """``buffer`` holds a value that matters from node number ``first`` to ``last`` of its launch, both included."""

    buffer: Buffer
    first: int
    last: int


@dataclass(frozen=True)
class LaunchFacts:
    """One launch (or an open program), all its blocks together.

    ``footprint``: bytes of all tiles of one block, by space; ``peak``: of those alive at once, which is what a planner
    that reuses memory needs. Both are None for a space with a tile of symbolic size.
    """

    name: str
    blocks: Amount
    flops: Amount
    bytes: Bytes
    lives: tuple[Life, ...]
    footprint: Mapping[Space, int | None]
    peak: Mapping[Space, int | None]


@dataclass(frozen=True)
class Analysis:
    """Facts by node name and by the name of the launch ("" for an open program)."""

    nodes: Mapping[str, NodeFacts] = field(default_factory=dict[str, NodeFacts])
    launches: Mapping[str, LaunchFacts] = field(default_factory=dict[str, LaunchFacts])


def analyze(graph: Graph, dims: Mapping[str, int] | None = None) -> Analysis:
    """Facts of every node and launch. ``dims`` gives values to symbolic dimensions; the others stay in the amounts."""
    nodes = {n.name: _node(graph, n, dims) for n in graph.nodes}
    tops = [r.name for r in graph.loops if not r.parent] if not graph.program.is_open else [""]
    return Analysis(nodes, {top: _launch(graph, top, nodes, dims) for top in tops})


def _node(graph: Graph, node: Node, dims: Mapping[str, int] | None) -> NodeFacts:
    moved: dict[Space, list[Amount]] = {}
    flops: list[Amount] = []
    if node.kind != "test":
        for runs, s in _executed(node.stmt, 1):
            count = amount(runs, dims)
            flops.append(times(count, *(amount(x, dims) for x in _flops(s))))
            for space, size in _moved(s):
                moved.setdefault(space, []).append(times(count, *(amount(x, dims) for x in size)))
    footprint: dict[Space, list[Amount]] = {}
    for b in dict.fromkeys((*node.reads, *node.writes)):
        footprint.setdefault(b.space, []).append(size_of(b, dims))
    count, certain = _times(graph, node, dims)
    return NodeFacts(node.name, plus(flops), _summed(moved), _summed(footprint), count, certain)


def _summed(parts: Mapping[Space, list[Amount]]) -> dict[Space, Amount]:
    return {space: plus(p) for space, p in sorted(parts.items())}


def size_of(b: Buffer, dims: Mapping[str, int] | None = None) -> Amount:
    """Bytes of a buffer without padding."""
    count = times(*(amount(d, dims) for d in b.shape))
    return (count * b.dtype.bits + 7) // 8 if isinstance(count, int) else times(count, b.dtype.bytes)


def _executed(s: Stmt, count: Amount) -> Iterator[tuple[Amount, Stmt]]:
    """``s`` and the statements inside it, each with how often it runs when ``s`` runs once. Both sides of a branch."""
    yield count, s
    inner = count
    match s:
        case Parallel():
            inner = times(count, *(amount(e) for e in s.extents))
        case For():
            inner = times(count, amount(s.extent))
        case _:
            pass
    for body in bodies(s):
        for x in body:
            yield from _executed(x, inner)


ARITHMETIC = frozenset(("+", "-", "*", "/", "min", "max"))


def _flops(s: Stmt) -> tuple[Amount, ...]:
    """Operations of one execution, as factors. A multiply-add counts two, a scalar function one."""
    match s:
        case Gemm():
            return (2, *s.mnk)
        case Reduce() | Scan() | Quantify():
            return s.src.extent
        case AtomicTile():
            return s.value.extent
        case Parallel() | For():
            return (0,)
        case _:
            return (sum(_float_ops(x) for x in expressions(s)),)


def _float_ops(x: Expr) -> int:
    return sum(
        1
        for e in walk(x)
        if e.dtype.is_float and (isinstance(e, Call) or (isinstance(e, Binary) and e.op in ARITHMETIC))
    )


def _moved(s: Stmt) -> Iterator[tuple[Space, tuple[Amount, ...]]]:
    """(space, factors of the bytes) of each access of one execution."""
    match s:
        case Copy() | Fill() | Gemm() | Reduce() | Scan() | Transpose() | AtomicTile() | Quantify():
            for r in (*read_regions(s), *written_regions(s)):
                yield r.buffer.space, (r.dtype.bytes, *r.extent)
        case _:
            for b in (*read_buffers(s), *written_buffers(s)):
                yield b.space, (b.dtype.bytes,)


def _times(graph: Graph, node: Node, dims: Mapping[str, int] | None) -> tuple[Amount, bool]:
    """Executions over the launch: blocks times trip counts around the node."""
    factors: list[Amount] = []
    certain = True
    at = node.loop
    while at:
        loop = graph.loop(at)
        match loop.stmt:
            case Launch():
                factors += [amount(e, dims) for e in loop.stmt.grid]
            case For():
                factors.append(amount(loop.stmt.extent, dims))
            case _:
                certain = False
        at = loop.parent
    return times(*factors), certain


def _launch(
    graph: Graph, top: str, facts: Mapping[str, NodeFacts], dims: Mapping[str, int] | None
) -> LaunchFacts:
    inside = [n for n in graph.nodes if not top or _top(graph, n) == top]
    bytes: dict[Space, list[Amount]] = {}
    for n in inside:
        for space, size in facts[n.name].bytes.items():
            bytes.setdefault(space, []).append(times(facts[n.name].times, size))
    flops = plus(times(facts[n.name].times, facts[n.name].flops) for n in inside)
    lives = _lives(graph, inside)
    stmt = graph.loop(top).stmt if top else None
    blocks = times(*(amount(e, dims) for e in stmt.grid)) if isinstance(stmt, Launch) else 1
    tiles = [b for b in buffers(stmt.body if isinstance(stmt, Launch) else graph.program.body) if _is_tile(b)]
    footprint = {
        space: _total([b for b in tiles if b.space is space], dims)
        for space in sorted({b.space for b in tiles})
    }
    peak = {space: _peak([x for x in lives if x.buffer.space is space], dims) for space in footprint}
    return LaunchFacts(top, blocks, flops, _summed(bytes), lives, footprint, peak)


def _is_tile(b: Buffer) -> bool:
    return b.space is not Space.GLOBAL and b.source is None


def _top(graph: Graph, node: Node) -> str:
    at = node.loop
    while at and (parent := graph.loop(at).parent):
        at = parent
    return at


def _total(buffers: list[Buffer], dims: Mapping[str, int] | None) -> int | None:
    return known(plus(size_of(b, dims) for b in buffers))


def _peak(lives: list[Life], dims: Mapping[str, int] | None) -> int | None:
    """Most bytes alive at one node."""
    sizes = {x.buffer: known(size_of(x.buffer, dims)) for x in lives}
    if None in sizes.values():
        return None
    # the sum only grows where a life begins
    return max(
        (sum(sizes[y.buffer] or 0 for y in lives if y.first <= x.first <= y.last) for x in lives),
        default=0,
    )


def _lives(graph: Graph, inside: list[Node]) -> tuple[Life, ...]:
    """First and last node that touch each tile; a value that outlives an iteration lives through the whole loop."""
    number = {n.name: k for k, n in enumerate(inside)}
    uses: dict[Buffer, list[int]] = {}
    for k, n in enumerate(inside):
        for b in dict.fromkeys((*n.reads, *n.writes)):
            if _is_tile(b):
                uses.setdefault(b, []).append(k)
    around = {n.name: _around(graph, n) for n in inside}
    spans: dict[str, tuple[int, int]] = {}
    for k, n in enumerate(inside):
        for loop in around[n.name]:
            spans[loop] = (spans.get(loop, (k, k))[0], k)
    kept = {(e.buffer, loop) for e in graph.edges if e.carried and e.kind == "raw" and e.source in number
            for loop in set(around[e.source]) & set(around[e.target])}  # fmt: skip
    out: list[Life] = []
    for b, at in uses.items():
        first, last = at[0], at[-1]
        for loop, (begin, end) in spans.items():
            outside = any(not begin <= k <= end for k in at)
            if any(begin <= k <= end for k in at) and (outside or (b, loop) in kept):
                first, last = min(first, begin), max(last, end)
        out.append(Life(b, first, last))
    return tuple(out)


def _around(graph: Graph, node: Node) -> tuple[str, ...]:
    """Loops around a node, without the launch and branches."""
    out: list[str] = []
    at = node.loop
    while at:
        loop = graph.loop(at)
        if not isinstance(loop.stmt, Launch | If):
            out.append(at)
        at = loop.parent
    return tuple(out)
