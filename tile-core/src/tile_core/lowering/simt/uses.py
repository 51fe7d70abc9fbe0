"""Which elements a loop's body touches, and under which conditions: takes statements, gives reads and writes by element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...expr import Buffer, Expr, Load, Select, children
from ...program import Atomic, If, Stmt, Store
from .conditions import Path

Key = tuple[Buffer, tuple[Expr, ...]]


@dataclass
class Uses:
    """How a body uses one element: the paths to its reads and writes. ``needed``: it is read before it is surely set.

    ``updates``: atomic ones without a result, with the paths to them.
    """

    reads: list[Path] = field(default_factory=list[Path])
    writes: list[Path] = field(default_factory=list[Path])
    updates: list[tuple[Atomic, Path]] = field(default_factory=list[tuple[Atomic, Path]])
    needed: bool = False


def uses_of(body: Sequence[Stmt], path: Path) -> dict[Key, Uses] | None:
    """Every element that a body of stores, updates and branches touches; None for any other body. ``path`` leads to the body."""
    found = _Finder(path)
    return found.uses if all(found.step(s, path) for s in body) else None


@dataclass
class _Finder:
    top: Path
    uses: dict[Key, Uses] = field(default_factory=dict[Key, Uses])

    def value(self, x: Expr, path: Path) -> None:
        if isinstance(x, Load):
            use = self.uses.setdefault((x.buffer, x.indices), Uses())
            use.reads.append(path)
            use.needed = use.needed or self.top not in use.writes
        if isinstance(x, Select) and x.lazy:
            self.value(x.condition, path)
            self.value(x.then, (*path, (x.condition, True)))
            self.value(x.other, (*path, (x.condition, False)))
            return
        for inner in children(x):
            self.value(inner, path)

    def step(self, s: Stmt, path: Path) -> bool:
        match s:
            case Store():
                for x in (*s.indices, s.value):
                    self.value(x, path)
                self.uses.setdefault((s.buffer, s.indices), Uses()).writes.append(path)
                return True
            case Atomic(result=None, value=Expr() as value):
                for x in (*s.indices, value):
                    self.value(x, path)
                self.uses.setdefault((s.buffer, s.indices), Uses()).updates.append((s, path))
                return True
            case If():
                self.value(s.condition, path)
                sides = ((s.then, True), (s.other, False))
                return all(self.step(t, (*path, (s.condition, side))) for body, side in sides for t in body)
            case _:
                return False


def writes_alone(uses: dict[Key, Uses]) -> list[Key]:
    """Elements that go together with nothing else: their buffer is not written, or touched at this one place only."""
    touched: dict[Buffer, set[Key]] = {}
    for key in uses:
        touched.setdefault(key[0].storage, set()).add(key)
    changed = {buffer.storage for (buffer, _), use in uses.items() if use.writes or use.updates}
    return [k for k in uses if len(touched[k[0].storage]) == 1 or k[0].storage not in changed]
