"""Products of the matrix engine as the threads of a launch start them: in a scheduled loop, and outside of the steps of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...expr import Buffer, Expr, Space, const
from ...program import Gemm, Stmt
from .engine_gemm import hold, product

if TYPE_CHECKING:
    from .roles import Roles


@dataclass
class Products:
    """The products of a launch."""

    roles: Roles

    def accumulate_in(self, c: Buffer) -> bool:
        """Whether some product of the engine adds to a buffer."""
        return any(
            isinstance(n.stmt, Gemm) and n.stmt.c.buffer == c and self.roles.on_engine(n.name)
            for n in self.roles.context.plan.graph.nodes
        )

    def at_once(self, s: Gemm) -> Iterator[Stmt]:
        """A product outside the steps of a scheduled loop: the threads wait for it."""
        context, engines, sums = self.roles.context, self.roles.engines, self.roles.sums
        c = s.c.buffer.storage
        if sums and not s.clear:
            yield from sums.put(c)
        shared = {x.storage for x in (s.a.buffer, s.b.buffer) if x.space is Space.SHARED}
        if shared - self.roles.rings.keys() or sums:
            yield engines.visible()
            yield context.meet()
        if sums and not s.clear:
            yield sums.memory.after()
        yield from self.started(context.name_of(s), s, const(0 if s.clear else 1))
        if sums:
            yield from sums.finished()
            yield from sums.fetched(c)
        else:
            yield engines.settle("tensor", 0)
            yield hold(context, engines, c)

    def started(
        self, op: str, s: Gemm, accumulate: Expr, arriving: Mapping[int, tuple[Stmt, ...]] | None = None
    ) -> Iterator[Stmt]:
        """Start the products of a gemm: each group its own. ``arriving`` as in the engine's task."""
        context, engines, sums = self.roles.context, self.roles.engines, self.roles.sums
        at = sums.at(s.c.buffer.storage) if sums else None
        started = engines.multiply(product(context, op, s, self.roles.team_group, accumulate, at, arriving))
        yield from (sums.leader(*started),) if sums else started
