"""From the graph of a program to what the engine solves: one problem for each launch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod

from ..errors import KernelError
from ..expr import Buffer, Const, Space, Var
from ..graph import Graph, Node
from ..layout.layout import Axis, Layout, injective
from ..program import (
    AtomicTile,
    Copy,
    Fill,
    For,
    Gemm,
    Launch,
    Parallel,
    Quantify,
    Reduce,
    Region,
    Scan,
    Stmt,
    Transpose,
    While,
)
from ..program.facts import divisors
from ..span import Span
from .alone import adds_alone, may_be_readable
from .indices import Facts
from .model import Elementwise, Home, Multiply, Op, Prefix, Problem, Reduction, Tile
from .nest import Nest, Tiles, element_bits
from .rules import copy, parallel
from .teams import FRONT, OWN, Teams

GUESS = 16  # iterations of a loop whose length is not known


@dataclass(frozen=True, slots=True)
class LaunchProblem:
    """A problem, the buffers behind its tiles, and nodes that no layout is chosen for, each with the reason."""

    launch: Launch | None
    problem: Problem
    tiles: Tiles
    nodes: tuple[Node, ...]
    left: tuple[tuple[str, str], ...] = ()

    def having(self, layouts: Mapping[Buffer, Layout]) -> Problem:
        """The problem where shared tiles lie already as another team of the launch needs them."""
        known = {
            name: layouts[b]
            for name, b in self.tiles.buffers.items()
            if b.space is Space.SHARED and b in layouts
        }
        return replace(self.problem, pinned={**self.problem.pinned, **known}) if known else self.problem


def problems(graph: Graph, threads: int) -> Iterator[LaunchProblem]:
    """Problems in program order. ``threads``: of a launch that leaves their number open, and of an open program.

    Raises:
        KernelError: a pinned layout does not fit its buffer.
    """
    facts = divisors(graph.program.body)
    launches = [r for r in graph.loops if isinstance(r.stmt, Launch)]
    for top in launches:
        assert isinstance(top.stmt, Launch)
        count = top.stmt.thread_count if top.stmt.threads_given else threads
        found, front = Teams.of(top.stmt), top.stmt.front
        if found is None or front is None:
            yield _Reader(graph, top.stmt, count, facts=facts).read(top.name)
            continue
        block = count + 2 * front.threads  # one group more starts copies
        for team, size in ((OWN, count), (FRONT, front.threads)):
            yield _Reader(graph, top.stmt, size, found, team, block, facts=facts).read(top.name)
    if not launches:
        yield _Reader(graph, None, threads).read("")


@dataclass(slots=True)
class _Reader:
    """Reads the nodes of one launch; where it has two ``teams``, those of one ``team``."""

    graph: Graph
    launch: Launch | None
    threads: int
    teams: Teams | None = None
    team: str = OWN
    block: int = 0
    tiles: Tiles = field(default_factory=Tiles)
    ops: list[Op] = field(default_factory=list[Op])
    repeats: dict[str, int] = field(default_factory=dict[str, int])
    left: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    homes: dict[str, Home] = field(default_factory=dict[str, Home])
    regions: dict[str, tuple[str, int, dict[Var, For]]] = field(
        default_factory=dict[str, tuple[str, int, "dict[Var, For]"]]
    )

    facts: Facts = field(default_factory=dict[Var, int])

    def read(self, top: str) -> LaunchProblem:
        pinned = dict(self.pinned())
        mine: list[Node] = []
        for node in self.graph.nodes:
            root, times, around = self.region(node.loop)
            if root != top or not self.concerns(node.stmt):
                continue
            mine.append(node)
            if node.kind == "test":
                continue
            for op, outside in self.node(node, around):
                self.ops.append(op)
                self.repeats[op.name] = max(1, times // outside)
        name = self.graph.program.name + (f" {top}" if len(self.graph.program.launches) > 1 else "")
        name += "" if self.team == OWN else f" {self.team}"
        problem = Problem(name, self.threads, tuple(self.ops), self.repeats, pinned, self.homes, self.block)
        return LaunchProblem(self.launch, problem, self.tiles, tuple(mine), tuple(self.left))

    def concerns(self, s: Stmt) -> bool:
        """Whether a statement is for this team; one that is for both is read with the launch's own threads."""
        found = self.teams.of_statement(s) if self.teams else frozenset({OWN})
        return self.team in found and (self.team == OWN or OWN not in found)

    def region(self, name: str) -> tuple[str, int, dict[Var, For]]:
        """The launch a region is in, how often it runs in a block, and the loops around with their variables."""
        if name not in self.regions:
            self.regions[name] = self._region(name)
        return self.regions[name]

    def _region(self, name: str) -> tuple[str, int, dict[Var, For]]:
        if not name:
            return "", 1, {}
        loop = self.graph.loop(name)
        root, times, around = self.region(loop.parent)
        match loop.stmt:
            case Launch():
                return name, 1, {}
            case For(var=var, extent=extent):
                times *= max(1, extent) if isinstance(extent, int) else GUESS
                return root, times, around if var is None else {**around, var: loop.stmt}
            case While():
                return root, times * GUESS, around
            case _:
                return root, times, around

    def pinned(self) -> Iterator[tuple[str, Layout]]:
        for buffer, layout in self.launch.layouts if self.launch else ():
            span = buffer.span or (self.launch.span if self.launch else None)
            yield self.tiles.of(buffer.storage).name, checked(buffer, layout, self.threads, span)

    def node(self, node: Node, around: dict[Var, For]) -> Iterator[tuple[Op, int]]:
        """The ops of a node, each with how often loops that it took in repeat it."""
        match node.stmt:
            case Gemm():
                yield from self.gemm(node, node.stmt, around)
            case Reduce() | Scan():
                yield from self.across(node, node.stmt, around)
            case s:
                nest = Nest(node.name, self.tiles, around, facts=self.facts)
                op = _elementwise(nest, s, node.kind == "elements")
                if op is not None:
                    yield op, nest.outside
                elif node.kind != "elements":
                    self.left.append((node.name, "an extent is known only when the kernel runs"))

    def gemm(self, node: Node, s: Gemm, around: dict[Var, For]) -> Iterator[tuple[Op, int]]:
        if not all(isinstance(n, int) for r in (s.a, s.b, s.c) for n in r.shape) or len(s.c.shape) != 2:
            raise KernelError("a gemm needs tiles of two dimensions whose extents are numbers", s.span)
        parts: list[Tile] = []
        for r, letter in ((s.a, "a"), (s.b, "b"), (s.c, "c")):
            tile = self.direct(r, letter != "c", f"{node.name}.{letter}")
            if tile is None:
                tile = self.temporary(r, f"{node.name}.{letter}")
                if letter != "c" or not s.clear:
                    yield self.moved(f"{tile.name}.load", r, tile, around, False)
            parts.append(tile)
        types = (s.a.dtype.name, s.b.dtype.name, s.c.dtype.name)
        exact = dict(s.hints).get("precision") == "ieee"
        a, b, c = parts
        alone, placed = adds_alone(self.graph, node), may_be_readable(s.a) and may_be_readable(s.b)
        yield (
            Multiply(node.name, a, b, c, s.transpose_a, s.transpose_b, types, s.policy, exact, alone, placed),
            1,
        )
        if c.name == f"{node.name}.c":
            yield self.moved(f"{node.name}.c.store", s.c, c, around, True)

    def across(self, node: Node, s: Reduce | Scan, around: dict[Var, For]) -> Iterator[tuple[Op, int]]:
        if not all(isinstance(n, int) for r in (s.src, s.dst) for n in r.shape):
            self.left.append((node.name, "an extent is known only when the kernel runs"))
            return
        source, result = self.direct(s.src, False, ""), self.direct(s.dst, False, "")
        if source is None:
            source = self.temporary(s.src, f"{node.name}.source")
            yield self.moved(node.name, s.src, source, around, False)
        stored = result is None
        result = result or self.temporary(s.dst, f"{node.name}.result")
        name = node.name if self.direct(s.src, False, "") is not None else f"{node.name}.across"
        axis = s.axis % max(1, len(source.shape))
        if isinstance(s, Scan):
            yield Prefix(name, source, result, axis), 1
        else:
            yield Reduction(name, source, result, axis, len(result.shape) == len(source.shape)), 1
        if stored:
            yield self.moved(f"{node.name}.store", s.dst, result, around, True)

    def direct(self, r: Region, shared: bool, name: str) -> Tile | None:
        """The tile of a region that is a whole fragment or, if ``shared``, a part of shared memory; else None."""
        buffer = r.buffer
        if buffer.space is Space.FRAGMENT and buffer.source is None and is_whole(r):
            return self.tiles.of(buffer)
        if buffer.space is not Space.SHARED or not shared:
            return None
        if buffer.ndim == 2 and buffer.source is None and is_whole(r):
            return self.tiles.of(buffer)
        shape = tuple(n for n in r.shape if isinstance(n, int))
        home, bits = self.tiles.of(buffer.storage), element_bits(buffer.dtype)
        alike = (
            buffer.source is not None
            and is_whole(r)
            and bits == home.bits
            and prod(shape) == prod(home.shape)
        )
        part = buffer.source is None and buffer.ndim >= 2 and not any(r.point[-2:])
        column = r.start[-1].value if part and isinstance(r.start[-1], Const) else 0
        self.homes[name] = Home(home.name, shape if part or alike else (), alike, int(column))
        return Tile(name, shape, bits, Space.SHARED)

    def temporary(self, r: Region, name: str) -> Tile:
        """A fragment that stands between an op and what it cannot use as it is."""
        shape = tuple(n for n in r.shape if isinstance(n, int)) or (1,)
        return Tile(name, shape, element_bits(r.dtype), Space.FRAGMENT)

    def moved(self, name: str, r: Region, tile: Tile, around: dict[Var, For], out: bool) -> tuple[Op, int]:
        """The copy between a region and the fragment that stands for it."""
        nest = Nest(name, self.tiles, around, facts=self.facts)
        along = [nest.loop(n) for n in tile.shape]
        nest.adopt(r.buffer, r.start)
        nest.region(r, along[len(along) - len(r.shape) :] if r.shape else [], out)
        nest.held(tile, along, not out)
        return nest.op(), nest.outside


def _elementwise(nest: Nest, s: Stmt, everywhere: bool) -> Elementwise | None:
    match s:
        case Parallel():
            return parallel.read(nest, s, everywhere)
        case Copy():
            return copy.read_copy(nest, s)
        case Fill():
            return copy.read_fill(nest, s)
        case Transpose():
            return copy.read_transpose(nest, s)
        case AtomicTile():
            return copy.read_atomic(nest, s)
        case Quantify():
            return copy.read_quantify(nest, s)
        case _:
            return None


def is_whole(r: Region) -> bool:
    """Whether a region is all of its buffer."""
    return r.whole or (r.shape == r.buffer.shape and all(_zero(x) for x in r.start))


def _zero(x: object) -> bool:
    return getattr(x, "value", None) == 0


def checked(buffer: Buffer, layout: object, threads: int, span: Span | None) -> Layout:
    """A layout that the user pinned, if it can hold the buffer.

    Raises:
        KernelError: it is no layout, has another shape, puts two elements in one place, or uses other threads.
    """
    if not isinstance(layout, Layout):
        raise KernelError(
            f"the layout pinned for {buffer.name} is a {type(layout).__name__}, not a Layout", span
        )
    if layout.shape != buffer.shape:
        raise KernelError(
            f"the layout pinned for {buffer.name} is of shape {layout.shape}, not {buffer.shape}", span
        )
    if not injective(layout):
        raise KernelError(
            f"the layout pinned for {buffer.name} puts two elements in one place: {layout}",
            span,
            why="a layout must keep elements apart, or one of them would be lost",
            help="give every digit its own stride, or leave the layout to inference",
        )
    wanted = (Axis.THREAD, Axis.REGISTER) if buffer.space is Space.FRAGMENT else (Axis.MEMORY,)
    strange = [i for i in (*layout.iters, *layout.replicas) if i.axis not in wanted and i.extent > 1]
    if strange or layout.cosize(Axis.THREAD) > threads:
        raise KernelError(
            f"the layout pinned for {buffer.name} does not fit a {buffer.space} tile of {threads} threads: {layout}",
            span,
        )
    return layout
