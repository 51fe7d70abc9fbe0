"""All steps from a plan to a module in the form that TVM's LLVM code generator takes, in order."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _tvm as tvm
from ..inference.plan import TilePlan
from .blocks import Lowered, lower
from .matmul import Vectors
from .nodes import Node


@dataclass(frozen=True)
class Module:
    """A TVM module with one function for each launch, and what a launcher must know about them."""

    module: Node
    lowered: Lowered


def lower_plan(plan: TilePlan, target: Node) -> Module:
    """Block lowering, then TVM's passes.

    There is only one. All rewriting (simplification, vectorisation, unrolling) is LLVM's: TVM's passes fold ``x * 0.0`` to
    zero, let signed arithmetic overflow be undefined, and fail on constants that wrap.
    """
    vectors = Vectors(plan.info.panel_spans[0], plan.info.registers * 4 // plan.info.panel_spans[0])
    lowered = lower(plan.program, vectors)
    module = tvm.IRModule({e.name: e.function for e in lowered.entries})
    module = tvm.tirx.transform.BindTarget(target)(module)
    return Module(module, lowered)
