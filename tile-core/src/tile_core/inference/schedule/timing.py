"""Times of the ops of a loop body: what a search finds, and what programs are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Timing:
    """When ops of iteration 0 are issued by their stream and started by their unit, and the slots of each ring.

    Iteration i does the same i * ``interval`` clocks later. ``bound``: what no interval can be below. ``origin``: when a kernel
    step begins, where the user has fixed that; else streams choose.
    """

    interval: int
    issue: Mapping[str, int]
    start: Mapping[str, int]
    depth: Mapping[str, int] = field(default_factory=dict[str, int])
    bound: int = 0
    origin: int | None = None

    @property
    def flight(self) -> int:
        """How many intervals lie between the first and the last issue of an iteration."""
        return (max(self.issue.values()) - min(self.issue.values())) // self.interval


def overlap(a: int, la: int, b: int, lb: int, interval: int) -> bool:
    """Whether two stretches of time meet when both are repeated at each interval."""
    return bool(la and lb) and ((b - a) % interval < la or (a - b) % interval < lb)
