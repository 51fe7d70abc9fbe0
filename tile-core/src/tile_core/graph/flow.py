"""Dependences between the steps of a program: takes their accesses and the regions they are in, gives edges.

Accesses that still matter are kept for each buffer. A write that surely covers an older access makes the older one
forgotten, so edges go to the nearest producers only. A loop's body is walked a second time, against the accesses that its
own end leaves behind: what meets them is carried from one iteration to a later one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..expr import Buffer, Const, Var, variables
from ..program import For, If, Launch, Stmt, While
from ..program.visit import defined, expressions, statements
from .boxes import Box, Turn, covers, meet
from .nodes import Edge
from .touch import Touch


@dataclass(frozen=True, slots=True)
class Step:
    """A node with its accesses; ``stmts`` are searched for scalars that it uses and binds."""

    name: str
    touches: tuple[Touch, ...]
    stmts: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Region:
    """A loop, a launch or a branch with its bodies (two for a branch)."""

    stmt: Launch | For | While | If
    bodies: tuple[list[Step | Region | Forget], ...]


@dataclass(frozen=True, slots=True)
class Forget:
    """The buffer begins to exist here: nothing before matters."""

    buffer: Buffer


@dataclass(frozen=True, slots=True)
class Past:
    """An access that a later one may depend on. ``old``: of an earlier iteration of the loop being walked again."""

    node: str
    box: Box
    write: bool
    old: bool = False


Pasts = dict[Buffer, list[Past]]
Item = Step | Region | Forget
KIND = {(True, False): "raw", (False, True): "war", (True, True): "waw"}


@dataclass(slots=True)
class Flow:
    """Walks regions and collects edges, each once, in program order of their targets."""

    found: dict[tuple[str, str, int, str, bool], Edge] = field(
        default_factory=dict[tuple[str, str, int, str, bool], Edge]
    )
    binders: dict[Var, str] = field(default_factory=dict[Var, str])

    def edges(self, items: Sequence[Item]) -> list[Edge]:
        """Edges of a whole program."""
        self.body(items, {}, None)
        return list(self.found.values())

    def body(self, items: Sequence[Item], past: Pasts, turn: Turn | None) -> None:
        """Walk in order, updating ``past``. With ``turn``: only meetings with old accesses count, and are carried."""
        for item in items:
            match item:
                case Step():
                    self.step(item, past, turn)
                case Region():
                    self.region(item, past, turn)
                case Forget():
                    past.pop(item.buffer, None)

    def region(self, region: Region, past: Pasts, turn: Turn | None) -> None:
        before = {b: list(p) for b, p in past.items()}
        if isinstance(region.stmt, If):
            after = [{b: list(p) for b, p in past.items()} for _ in region.bodies]
            for body, state in zip(region.bodies, after, strict=True):
                self.body(body, state, turn)
            past.clear()
            past.update(_union(*after))
            return
        (body,) = region.bodies
        self.body(body, past, turn)
        if not isinstance(region.stmt, Launch) and turn is None:
            self.again(region.stmt, body, past)
        if not _always_runs(region.stmt):
            merged = _union(before, past)
            past.clear()
            past.update(merged)

    def again(self, loop: For | While, body: Sequence[Item], past: Pasts) -> None:
        """Edges from an iteration of ``loop`` to later ones."""
        names = frozenset(_names(body))
        state = {
            b: old
            for b, ps in past.items()
            if (old := [Past(p.node, p.box, p.write, True) for p in ps if p.node in names])
        }
        inner = frozenset(v for s in statements(loop.body) for v in defined(s))
        var = loop.var if isinstance(loop, For) else None
        self.body(body, state, Turn(var, loop.step if isinstance(loop, For) else 1, inner))

    def step(self, step: Step, past: Pasts, turn: Turn | None) -> None:
        if turn is None:
            self.scalars(step)
        for t in step.touches:
            for p in past.get(t.storage, ()):
                relevant = (p.write or t.write) and (
                    not p.old and p.node != step.name if turn is None else p.old
                )
                if relevant and meet(p.box, t.box, turn):
                    self.edge(p.node, step.name, t.storage, KIND[p.write, t.write], turn is not None)
        changing = frozenset[Var]() if turn is None else turn.everything
        for t in step.touches:
            kept = past.setdefault(t.storage, [])
            if t.write and t.box.exact:
                kept[:] = [p for p in kept if not covers(t.box, p.box, changing if p.old else frozenset())]
            kept.append(Past(step.name, t.box, t.write))

    def edge(self, source: str, target: str, buffer: Buffer | Var, kind: str, carried: bool) -> None:
        key = (source, target, id(buffer), kind, carried)
        if key not in self.found:
            self.found[key] = Edge(source, target, buffer, kind, carried)

    def scalars(self, step: Step) -> None:
        """Edges from the step that binds a scalar to those that use it."""
        if self.binders:
            for s in statements(step.stmts):
                for x in expressions(s):
                    for v in variables(x):
                        if (source := self.binders.get(v)) and source != step.name:
                            self.edge(source, step.name, v, "raw", False)
        for s in step.stmts:
            self.binders.update((v, step.name) for v in defined(s) if not hasattr(s, "body"))


def _names(items: Sequence[Item]) -> Iterator[str]:
    for item in items:
        match item:
            case Step():
                yield item.name
            case Region():
                for body in item.bodies:
                    yield from _names(body)
            case Forget():
                pass


def _always_runs(s: Launch | For | While | If) -> bool:
    """Whether the body runs at least once."""
    match s:
        case For():
            extent = s.extent.value if isinstance(s.extent, Const) else s.extent
            return isinstance(extent, int) and extent > 0
        case Launch():
            return True
        case _:
            return False


def _union(*states: Pasts) -> Pasts:
    """Accesses that matter after any of ``states``."""
    out: Pasts = {}
    for state in states:
        for buffer, pasts in state.items():
            kept = out.setdefault(buffer, [])
            kept += [p for p in pasts if not any(p is q for q in kept)]
    return out
