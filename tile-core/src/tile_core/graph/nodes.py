"""The fused tile-level dataflow graph (FTG): tile ops are nodes, tile buffers are edges, loops are regions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..expr import Buffer, Var
from ..program import For, If, Launch, Stmt, TileProgram, While


@dataclass(frozen=True)
class Loop:
    """A region of the graph: a launch, a loop or a branch. ``parent`` is the name of the enclosing one, or "".

    Both sides of an ``If`` are regions with the same statement: ``if0`` and ``else0``.
    """

    name: str
    stmt: Launch | For | While | If
    parent: str = ""


@dataclass(frozen=True)
class Node:
    """One op. ``stmt`` is a tile op, a ``Parallel`` loop, or a run of element statements outside both.

    A run (kind ``elements``) is a ``Parallel`` without variables whose body are the statements. A node of kind ``test``
    is the condition of an ``If`` or ``While`` that reads memory; its ``stmt`` is that statement.
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
    """``target`` must come after ``source`` because of ``buffer``, or of a scalar that ``source`` binds.

    ``kind`` is ``raw``, ``war`` or ``waw``. ``carried``: the dependence is on the previous iteration of the loop that
    both are in.
    """

    source: str
    target: str
    buffer: Buffer | Var
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
    def names(self) -> dict[int, str]:
        """``id`` of a statement of the program -> name of its node; every statement of a run has the run's name."""
        out: dict[int, str] = {}
        for n in self.nodes:
            out[id(n.stmt)] = n.name
            if n.kind == "elements":
                out.update((id(s), n.name) for s in getattr(n.stmt, "body", ()))
        return out

    @cached_property
    def by_name(self) -> dict[str, Node]:
        return {n.name: n for n in self.nodes}

    def region_of(self, stmt: Stmt) -> str:
        """The name of the region of a loop, branch or launch; "" if there is none."""
        return next((r.name for r in self.loops if r.stmt is stmt), "")

    def loop(self, name: str) -> Loop:
        """The region called ``name``. Raises ``StopIteration`` if there is none."""
        return next(r for r in self.loops if r.name == name)
