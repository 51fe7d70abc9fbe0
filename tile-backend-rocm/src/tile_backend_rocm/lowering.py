"""What this target does to a plan before it is printed, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tile_core.backend import Pass
from tile_core.errors import Unsupported
from tile_core.expr import Buffer
from tile_core.hardware import TargetInfo
from tile_core.inference.plan import TilePlan
from tile_core.program.visit import buffers

from .codegen.dialect import HIP

# types of which architectures have one kind or the other: CDNA3 the FNUZ kinds, later ones those of the OCP
KINDS = {
    "float8_e4m3fn": "float8_e4m3fnuz",
    "float8_e5m2": "float8_e5m2fnuz",
    "float8_e4m3fnuz": "float8_e4m3fn",
    "float8_e5m2fnuz": "float8_e5m2",
}


class RocmLowering:
    """Refuses types that the architecture or HIP C++ does not have; plans are lowered to threads by the codegen."""

    def __init__(self, info: TargetInfo) -> None:
        self.info = info

    def legalize(self, plan: TilePlan) -> TilePlan:
        for b in _named(plan):
            if b.dtype.name not in self.info.dtypes:
                raise Unsupported(
                    f"{b.name} is {b.dtype}, which {self.info.target} does not have",
                    b.span,
                    help=self._instead(b.dtype.name),
                )
            if b.dtype.name not in HIP.types:
                raise Unsupported(
                    f"{b.name} is {b.dtype}: no code for that type on {self.info.target} yet",
                    b.span,
                    help=f"types that work: {', '.join(sorted(self.info.dtypes & HIP.types.keys()))}",
                )
        return plan

    def _instead(self, name: str) -> str:
        other = KINDS.get(name, "")
        if other in self.info.dtypes:
            return f"its kind of that type is {other}"
        return f"it has {', '.join(sorted(self.info.dtypes & HIP.types.keys()))}"

    def passes(self) -> Sequence[Pass]:
        return ()


def _named(plan: TilePlan) -> Iterator[Buffer]:
    yield from plan.program.tensors
    yield from buffers(plan.program.body)
