"""What this target does to a plan before it is printed, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tile_core.backend import Pass
from tile_core.errors import Unsupported
from tile_core.expr import Buffer
from tile_core.hardware import TargetInfo
from tile_core.inference.plan import TilePlan
from tile_core.lowering.cplusplus_dialect import TYPES
from tile_core.program.visit import buffers


class CudaLowering:
    """Refuses types that CUDA C++ has no scalar of; plans are lowered to threads by the codegen."""

    def __init__(self, info: TargetInfo) -> None:
        self.info = info

    def legalize(self, plan: TilePlan) -> TilePlan:
        for b in _named(plan):
            if b.dtype.name not in TYPES:
                raise Unsupported(
                    f"{b.name} is {b.dtype}: no code for that type on {self.info.target} yet",
                    b.span,
                    help=f"types that work: {', '.join(TYPES)}",
                )
        return plan

    def passes(self) -> Sequence[Pass]:
        return ()


def _named(plan: TilePlan) -> Iterator[Buffer]:
    yield from plan.program.tensors
    yield from buffers(plan.program.body)
