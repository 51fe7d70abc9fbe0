"""Counters of iterations: loops that run several times in a block count on, so that tokens of the runs are told apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ...dtypes import INT32
from ...expr import Buffer, Space, const
from ...program import Alloc, For, Launch, Stmt, Store
from ...program.visit import statements
from .context import Context


@dataclass
class Counters:
    """``named``: whether a statement is a scheduled loop; ``scheduled``: or holds one. ``repeats``: a block does several tiles."""

    context: Context
    launch: Launch
    repeats: bool
    named: Callable[[Stmt], bool]
    scheduled: Callable[[Stmt], bool]
    made: dict[tuple[str, str], Buffer] = field(default_factory=dict[tuple[str, str], Buffer])

    def of(self, name: str, stream: str) -> Buffer | None:
        """Counts iterations on over all runs of a loop; None if it runs once in a block."""
        nested = any(
            isinstance(t, For) and not self.named(t) and self.scheduled(t)
            for t in statements(self.launch.body)
        )
        if not self.repeats and not nested:
            return None
        key = (name, stream)
        if key not in self.made:
            done = f"{name}_done"
            self.made[key] = Buffer(done, (), INT32, Space.VAR, number=self.context.unique(done))
        return self.made[key]

    def start(self, stream: str) -> tuple[Stmt, ...]:
        return tuple(s for _, c in self.by_loop(stream) for s in (Alloc(c), Store(c, (), const(0))))

    def by_loop(self, stream: str) -> Iterator[tuple[str, Buffer]]:
        """(loop, its counter) of a stream."""
        yield from ((name, c) for (name, of), c in self.made.items() if of == stream)
