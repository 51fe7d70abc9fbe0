"""The fused tile-level dataflow graph (FTG): tile ops are nodes, tile buffers are edges, loops are regions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..expr import Buffer
from ..program import For, If, Launch, Stmt, TileProgram, While


@dataclass(frozen=True)
class Loop:
    """A region of the graph: a launch, a loop or a branch. ``parent`` is the name of the enclosing one, or ""."""

    name: str
    stmt: Launch | For | While | If
    parent: str = ""


@dataclass(frozen=True)
class Node:
    """One op. ``stmt`` is a tile op, a ``Parallel`` loop, or a run of element statements outside both.

    ``loop`` is the name of the innermost region. ``reads`` and ``writes`` name storage buffers (views are resolved).
    """

    name: str
    kind: str
    stmt: Stmt
    loop: str
    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]


@dataclass(frozen=True)
class Edge:
    """``target`` must come after ``source`` because of ``buffer``.

    ``kind`` is ``raw``, ``war`` or ``waw``. ``carried``: the dependence is on the previous iteration of the loop that
    both are in.
    """

    source: str
    target: str
    buffer: Buffer
    kind: str = "raw"
    carried: bool = False


@dataclass(frozen=True)
class Graph:
    """The graph of one program, in program order."""

    program: TileProgram
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    loops: tuple[Loop, ...]

    @cached_property
    def by_name(self) -> dict[str, Node]:
        return {n.name: n for n in self.nodes}

    def loop(self, name: str) -> Loop:
        return next(r for r in self.loops if r.name == name)
