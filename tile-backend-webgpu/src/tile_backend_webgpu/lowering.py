"""What this target refuses of a plan before it is printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tile_core.backend import Pass
from tile_core.errors import Unsupported
from tile_core.expr import Buffer
from tile_core.hardware import TargetInfo
from tile_core.inference.plan import TilePlan
from tile_core.program.visit import buffers

from .codegen.scalars import REGISTERS


class WebgpuLowering:
    """Refuses types that WGSL has no value of."""

    def __init__(self, info: TargetInfo) -> None:
        self.info = info

    def legalize(self, plan: TilePlan) -> TilePlan:
        for b in _named(plan):
            if b.dtype.name not in REGISTERS:
                raise Unsupported(
                    f"{b.name} is {b.dtype}: WGSL has no such number",
                    b.span,
                    why="it computes with 32-bit numbers, and with float16",
                    help=f"types that work: {', '.join(REGISTERS)}",
                )
        return plan

    def passes(self) -> Sequence[Pass]:
        return ()


def _named(plan: TilePlan) -> Iterator[Buffer]:
    yield from plan.program.tensors
    yield from buffers(plan.program.body)
