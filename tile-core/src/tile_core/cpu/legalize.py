"""Checks that a plan holds only what the ``cpu`` target can run."""

from __future__ import annotations

from collections.abc import Sequence

from ..backend import Pass
from ..errors import Unsupported
from ..inference.plan import TilePlan
from ..program import Breakpoint
from ..program.visit import statements


class CpuLowering:
    """Nothing is decided here: a block is one thread of control, so tiles need no layout."""

    def legalize(self, plan: TilePlan) -> TilePlan:
        for s in statements(plan.program.body):
            if isinstance(s, Breakpoint):
                raise Unsupported(
                    "breakpoint() needs the interpreter",
                    s.span,
                    why="compiled code has no Python frame to stop in",
                    help="run with TILE_INTERPRET=1",
                )
        return plan

    def passes(self) -> Sequence[Pass]:
        return ()
