"""From a tile program to its dataflow graph: nodes and regions in program order, and every dependence between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..expr import loads
from ..program import (
    Alloc,
    Assert,
    Atomic,
    AtomicTile,
    Bind,
    For,
    If,
    Launch,
    Parallel,
    Print,
    Stmt,
    Store,
    TileOp,
    TileProgram,
    While,
)
from ..program.visit import expressions
from .boxes import Box
from .flow import Flow, Forget, Region, Step
from .nodes import Graph, Loop, Node
from .touch import Touch, touches

ELEMENTS = (Store, Bind, Atomic, Print, Assert)


def build(program: TileProgram) -> Graph:
    """The graph of a program, open or not. Names count per kind in program order: ``copy0``, ``gemm1``, ``for0``."""
    reader = _Reader()
    steps = reader.body(program.body, "")
    return Graph(program, tuple(reader.nodes), tuple(Flow().edges(steps)), tuple(reader.loops))


@dataclass(slots=True)
class _Reader:
    """Names nodes and regions while it walks the program, and notes what each touches."""

    nodes: list[Node] = field(default_factory=list[Node])
    loops: list[Loop] = field(default_factory=list[Loop])
    counts: Counter[str] = field(default_factory=Counter[str])

    def body(self, body: Sequence[Stmt], region: str) -> list[Step | Region | Forget]:
        out: list[Step | Region | Forget] = []
        run: list[Stmt] = []
        for s in body:
            if isinstance(s, ELEMENTS):
                run.append(s)
                continue
            if run:
                out.append(self.run(run, region))
                run = []
            match s:
                case TileOp() | Parallel():
                    out.append(self.node(_kind(s), s, (s,), region))
                case Launch() | For() | While() | If():
                    out += self.region(s, region)
                case Alloc():
                    out.append(Forget(s.buffer))
                case _:
                    pass
        if run:
            out.append(self.run(run, region))
        return out

    def run(self, stmts: Sequence[Stmt], region: str) -> Step:
        return self.node("elements", Parallel((), (), tuple(stmts), span=stmts[0].span), stmts, region)

    def node(self, kind: str, stmt: Stmt, stmts: Sequence[Stmt], region: str) -> Step:
        return self.step(kind, stmt, touches(stmts), region, stmts)

    def step(
        self, kind: str, stmt: Stmt, found: tuple[Touch, ...], region: str, stmts: Sequence[Stmt]
    ) -> Step:
        name = self.name(kind)
        reads = tuple(dict.fromkeys(t.storage for t in found if not t.write))
        writes = tuple(dict.fromkeys(t.storage for t in found if t.write))
        self.nodes.append(Node(name, kind, stmt, region, reads, writes))
        return Step(name, found, tuple(stmts))

    def name(self, kind: str) -> str:
        self.counts[kind] += 1
        return f"{kind}{self.counts[kind] - 1}"

    def region(self, s: Launch | For | While | If, parent: str) -> list[Step | Region | Forget]:
        out: list[Step | Region | Forget] = []
        if isinstance(s, While | If) and (reads := [load for x in expressions(s) for load in loads(x)]):
            # the condition itself is a reader that must wait for what it reads
            touched = tuple(
                Touch(r.buffer.storage, Box(r.buffer, whole=True, exact=False), False) for r in reads
            )
            out.append(self.step("test", s, touched, parent, ()))
        name = self.name(type(s).__name__.lower())
        self.loops.append(Loop(name, s, parent))
        if not isinstance(s, If):
            return [*out, Region(s, (self.body(s.body, name),))]
        then = self.body(s.then, name)
        other: list[Step | Region | Forget] = []
        if s.other:
            self.loops.append(Loop(f"else{name[2:]}", s, parent))
            other = self.body(s.other, f"else{name[2:]}")
        return [*out, Region(s, (then, other))]


def _kind(s: Stmt) -> str:
    return "atomic" if isinstance(s, AtomicTile) else type(s).__name__.lower()
