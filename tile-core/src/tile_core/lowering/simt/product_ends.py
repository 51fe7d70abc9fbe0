"""Waits for products that threads count: which have ended, and which accumulators may be used from there on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...program import Gemm, Stmt
from .engine_gemm import hold

if TYPE_CHECKING:
    from .role_loop import RoleLoop


@dataclass
class ProductEnds:
    """The ends of a loop's products as its own stream sees them."""

    loop: RoleLoop

    def wait(self, op: str, watched: str, pending: int) -> Iterator[Stmt]:
        """Wait for products. Accumulators that none of them writes any more may be used from here on."""
        yield self.loop.engines.settle("tensor", pending)
        queue = self.loop.schedule.body.queue(watched)
        ended = [u for u in queue if self.ended(queue, u, op, pending)]
        fresh = {u for u in ended if not self.known(queue, u, op)}
        written = {u: s.c.buffer.storage for u in queue if isinstance(s := self.loop.ops[u], Gemm)}
        for c in dict.fromkeys(written[u] for u in ended):
            writers = {u for u, other in written.items() if other == c}
            if writers <= set(ended) and writers & fresh:
                yield hold(self.loop.context, self.loop.engines, c)

    def ended(self, queue: list[str], u: str, op: str, pending: int) -> bool:
        """Whether the newest ``u`` has ended when ``op`` has waited until so many products are pending."""
        places = self.loop.schedule.places
        return pending == 0 or places.group_gap(queue, u, op, pending) <= places.gap(u, op)

    def known(self, queue: list[str], u: str, op: str) -> bool:
        """Whether an earlier wait has told ``op`` of the newest ``u``: its registers may have been used since, and must not be
        named again, or the compiler would finish what is done with them before this wait.
        """
        steps = self.loop.schedule.streams[self.loop.stream]
        at = next(n for n, s in enumerate(steps) if s.op == op)
        for s in (*reversed(steps[:at]), *reversed(steps[at:])):
            for w in s.waits if s.op != op else ():
                of_queue = self.loop.schedule.tokens[w.token].kind == "group"
                if of_queue and self.ended(queue, u, s.op, w.distance):
                    return True
            if s.op == u:
                return False
        return False
