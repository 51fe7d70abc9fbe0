"""Who tells a token of a scheduled loop: how many arrive at it in an iteration, and which of the threads do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...inference.schedule.program import Schedule, Token
from ...inference.sharing import Sharing
from .arriving import Arriving
from .context import Context
from .leads import LEAD, Leads

COPY = "copy"


def is_end(op: str) -> bool:
    """Whether an op of a schedule is the end of an asynchronous one, as its own stream sees it."""
    return op.endswith(".done")


@dataclass
class Telling:
    """``group``: threads of a group. ``arriving``: tokens told part by part. ``threads_of``: how many threads a stream has.

    ``signals_itself``: whether the matrix engine arrives at tokens when it has done an op.
    """

    context: Context
    schedules: Mapping[str, Schedule]
    leads: Leads
    sharing: Sharing | None
    group: int
    arriving: Mapping[tuple[str, str], Arriving]
    threads_of: Callable[[str], int]
    signals_itself: Callable[[str], bool]

    def parts(self, loop: str, token: Token) -> int:
        """How many words tell of one instance of a token."""
        found = self.arriving.get((loop, token.name))
        return found.parts if found else 1

    def arrivals(self, loop: str, token: Token) -> int:
        """Copies arrive once, with their bytes; the end of an engine's work in each group; what threads do in each subgroup."""
        if loop == LEAD:
            return self.leads.arrivals(token)
        copies = [p for p in token.producers if p in self.context.plan.bulk]
        own = [p for p in token.producers if p not in self.context.plan.bulk]
        many = self.sharing.blocks if self.releases_shared(loop, token) and self.sharing else 1
        once = {p for p in own if self.told_once(loop, token, p)}
        threads = (self.threads_of(self.schedules[loop].ops[p].stream) for p in own)
        each = (
            n // (self.group if p in once else self.context.plan.info.subgroup)
            for n, p in zip(threads, own, strict=True)
        )
        return bool(copies) + many * sum(each)

    def told_once(self, loop: str, token: Token, op: str) -> bool:
        """Whether one thread of each group arrives for an op: an engine's end, by which nobody learns what threads have done."""
        return self.signals_itself(op) or self.schedules[loop].told_once(token, op)

    def releases_shared(self, loop: str, token: Token) -> bool:
        """Whether copies that other blocks take part in wait for this token: then all of these blocks arrive."""
        if self.sharing is None:
            return False
        waiting = {
            step.op
            for step in self.schedules[loop].streams[COPY]
            if any(w.token == token.name for w in step.waits)
        }
        # one stream: what stands behind a wait waits as well
        order = [step.op for step in self.schedules[loop].streams[COPY]]
        first = min((order.index(op) for op in waiting), default=len(order))
        return any(op in self.sharing.copies for op in order[first:])
