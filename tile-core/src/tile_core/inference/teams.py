"""Two teams of threads in one block: which team does a statement of a launch that ``division`` has divided.

Each fragment is one team's, and teams tell each other things through shared memory only. So which team a statement is for follows
from the fragments that it touches.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from functools import cached_property

from ..expr import Buffer, Expr, Space, loads
from ..program import Bind, For, Gemm, Launch, Parallel, Stmt, Store
from ..program.visit import expressions
from ..program.visit import read_storages as read
from ..program.visit import written_storages as written

FRONT, OWN = "front", "main"  # the second team, and the launch's own threads


@dataclass(frozen=True)
class Teams:
    """``own``: the fragments of the launch's own threads; all others are the front's. ``known``: answers so far, by identity."""

    launch: Launch
    own: frozenset[Buffer]
    known: dict[int, tuple[Stmt, frozenset[str]]] = field(
        default_factory=dict[int, "tuple[Stmt, frozenset[str]]"], compare=False, repr=False
    )

    @staticmethod
    def of(launch: Launch) -> Teams | None:
        """The teams of a launch; None if all of its threads do the same."""
        return Teams(launch, launch.front.own) if launch.front else None

    def of_statement(self, s: Stmt) -> frozenset[str]:
        """The teams that a statement is for; one without fragments is for those that read what it writes."""
        if id(s) not in self.known:
            self.known[id(s)] = (s, self._found(s))
        return self.known[id(s)][1]

    def _found(self, s: Stmt) -> frozenset[str]:
        touched = fragments(read(s) | written(s))
        if touched:
            return frozenset({OWN if touched & self.own else FRONT})
        filled = written(s)
        readers = (self.of_statement(t) for t in steps(self.launch) if filled & read(t) and _touches(t))
        return frozenset(t for found in readers for t in found) or frozenset({OWN})

    def threads(self, names: frozenset[str]) -> int:
        """How many threads these teams have."""
        assert self.launch.front is not None
        return sum({OWN: self.launch.thread_count, FRONT: self.launch.front.threads}[n] for n in names)

    @cached_property
    def handed_over(self) -> frozenset[Buffer]:
        """Tiles that threads of one team write and the other one reads."""
        doing = [(s, next(iter(self.of_statement(s)))) for s in steps(self.launch) if _touches(s)]
        found = [
            {b for s, team in doing if team == one for b in written(s)}
            & {b for s, team in doing if team == other for b in read(s)}
            for one, other in ((FRONT, OWN), (OWN, FRONT))
        ]
        return frozenset(b for tiles in found for b in tiles if b.space is Space.SHARED)


def steps(launch: Launch) -> Iterator[Stmt]:
    """The statements of the block and of its loops."""
    for s in launch.body:
        yield from s.body if isinstance(s, For) else (s,)


def needed(s: Stmt) -> Set[Buffer]:
    """What a statement reads that it has not written itself, element by element, just before."""
    if not isinstance(s, Parallel):
        return read(s)
    out: set[Buffer] = set()
    made: dict[Buffer, tuple[Expr, ...]] = {}
    for t in s.body:
        if not isinstance(t, Store | Bind):
            return read(s)
        found = (x for e in expressions(t) for x in loads(e))
        out |= {x.buffer.storage for x in found if made.get(x.buffer) != x.indices}
        if isinstance(t, Store):
            made[t.buffer] = t.indices
    return out


def fragments(buffers: Set[Buffer]) -> set[Buffer]:
    return {b for b in buffers if b.space is Space.FRAGMENT}


def _touches(s: Stmt) -> bool:
    return isinstance(s, Gemm) or bool(fragments(read(s) | written(s)))
