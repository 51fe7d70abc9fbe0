"""The ops of a loop region: which nodes make up each op of its body, and what of it needs no schedule.

A node directly in the loop is an op; a loop or branch inside it is one op too, named as its region. Nodes that only name
values (``row = table[k]``) are no ops: every stream computes them for itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from ...expr import Buffer, Space, Var, loads
from ...graph import Edge, Graph, Loop, Node
from ...program import Atomic, AtomicTile, Bind, Break, Continue, Copy, For, If, Parallel, Stmt, While
from ...program.visit import expressions, read_buffers, statements, written_buffers


@dataclass(frozen=True)
class LoopRegion:
    """One loop of a graph."""

    graph: Graph
    loop: Loop

    @property
    def stmt(self) -> For:
        assert isinstance(self.loop.stmt, For), self.loop.name
        return self.loop.stmt

    @cached_property
    def owner(self) -> dict[str, str]:
        """Node -> op, for all nodes of the loop, in program order."""
        out: dict[str, str] = {}
        for n in self.graph.nodes:
            at = n.loop
            if at == self.loop.name:
                out[n.name] = n.name
                continue
            while at and (parent := self.graph.loop(at).parent) != self.loop.name:
                at = parent
            if at:
                out[n.name] = self._side(at)
        return out

    def _side(self, region: str) -> str:
        """Both sides of a branch are one op."""
        return f"if{region.removeprefix('else')}" if region.startswith("else") else region

    @cached_property
    def everywhere(self) -> tuple[str, ...]:
        """Nodes that give names to values of this iteration, from nothing that the loop changes."""
        written = {b for n in self.nodes for b in n.writes}
        found: dict[str, None] = {}
        for n in self.nodes:
            if n.loop == self.loop.name and self._names_values(n, written):
                needed = (
                    e.source for e in self.graph.edges if e.target == n.name and isinstance(e.buffer, Var)
                )
                if all(source in found or source not in self.owner for source in needed):
                    found[n.name] = None
        return tuple(found)

    def _names_values(self, n: Node, written: set[Buffer]) -> bool:
        return (
            n.kind == "elements"
            and isinstance(n.stmt, Parallel)
            and all(isinstance(s, Bind) for s in n.stmt.body)
            and all(
                load.buffer.space is Space.GLOBAL and load.buffer.storage not in written
                for s in n.stmt.body
                for x in expressions(s)
                for load in loads(x)
            )
        )

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(n for n in self.graph.nodes if n.name in self.owner)

    @cached_property
    def ops(self) -> dict[str, list[Node]]:
        """The nodes of each op, in program order."""
        out: dict[str, list[Node]] = {}
        for n in self.nodes:
            if n.name not in self.everywhere:
                out.setdefault(self.owner[n.name], []).append(n)
        return out

    @cached_property
    def edges(self) -> tuple[tuple[str, str, Edge], ...]:
        """(op, op, edge) of all dependences inside the loop, but those inside one op and one iteration of it."""
        out: list[tuple[str, str, Edge]] = []
        for e in self.graph.edges:
            u, v = self.owner.get(e.source), self.owner.get(e.target)
            known = u in self.ops and v in self.ops
            if (
                u is not None
                and v is not None
                and known
                and (u != v or (e.carried and not self._atomic(u, e)))
            ):
                out.append((u, v, e))
        return tuple(out)

    def _atomic(self, op: str, e: Edge) -> bool:
        """Whether an op does nothing with a buffer but one atomic update, whose order with itself does not matter."""
        found = [
            s
            for s in statements((self.statement(op),))
            if any(b.storage is e.buffer for b in (*read_buffers(s), *written_buffers(s)))
        ]
        return len(found) == 1 and isinstance(found[0], Atomic | AtomicTile)

    @cached_property
    def closed(self) -> bool:
        """Whether all that its iterations tell each other is in tiles, and none of them ends the loop."""
        return not any(isinstance(e.buffer, Var) for _, _, e in self.edges) and not any(
            _leaves(self.stmt.body)
        )

    def statement(self, op: str) -> Stmt:
        """The statement of an op."""
        nodes = self.ops[op]
        return nodes[0].stmt if nodes[0].name == op else self.graph.loop(op).stmt

    @cached_property
    def outside(self) -> frozenset[Buffer]:
        """Buffers that are touched outside the loop."""
        return frozenset(
            b for n in self.graph.nodes if n.name not in self.owner for b in (*n.reads, *n.writes)
        )

    def carries(self, b: Buffer) -> bool:
        """Whether an iteration finds in ``b`` what an earlier one left there, or changes it in several steps."""
        return any(
            e.buffer is b and ((e.carried and e.kind == "raw") or (not e.carried and e.kind == "war"))
            for _, _, e in self.edges
        ) or any(b in n.reads and b in n.writes for n in self.nodes)

    def renewed(self, b: Buffer) -> bool:
        """Whether all that writes to ``b`` in an iteration are copies of all of it, so that nothing of the one before is left."""
        writers = [n for n in self.nodes if b in n.writes]
        return bool(writers) and all(
            isinstance(n.stmt, Copy) and n.stmt.dst.whole and n.loop == self.loop.name for n in writers
        )


def _leaves(body: tuple[Stmt, ...]) -> Iterator[bool]:
    """True for each statement that leaves this loop, or goes to its next iteration."""
    for s in body:
        match s:
            case Break() | Continue():
                yield True
            case If():
                yield from _leaves((*s.then, *s.other))
            case For() | While():
                pass  # it leaves the inner loop
            case _:
                pass
