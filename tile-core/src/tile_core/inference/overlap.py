"""What runs while something else does: adds engines, boxes, schedules and shared copies to a plan that has layouts and atoms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..program import Gemm
from .alone import runs_alone
from .bulk import BoxCopy, bulk_copies
from .plan import TilePlan
from .schedule.engines import engine_of
from .schedule.loops import schedules
from .sharing import sharing


def overlapped(plan: TilePlan, boxes: bool = True) -> TilePlan:
    """The plan with what its asynchronous engines do. Without ``boxes`` the threads copy, for tensors that no box fits.

    Raises:
        KernelError: rings that the user pinned do not fit into shared memory.
    """
    bulk = bulk_copies(plan.graph, plan.info, plan.layouts) if boxes else {}
    engines = _engines(plan, bulk)
    return replace(
        plan,
        bulk=bulk,
        engines=engines,
        schedules=schedules(plan.graph, plan.info, plan.atoms, plan.layouts, engines),
        sharing={
            n: found
            for n, s in enumerate(plan.program.launches)
            if (found := sharing(s, plan.graph, plan.info, bulk, plan.atoms))
        },
    )


def _engines(plan: TilePlan, bulk: Mapping[str, BoxCopy]) -> dict[str, str]:
    """The asynchronous engine of each node; of an engine that signals by itself only what it can do without help."""
    rules, graph = plan.info.bulk, plan.graph
    if rules is None:
        return engine_of(graph, plan.info, plan.atoms, plan.operands)
    return {
        name: engine
        for name, engine in engine_of(graph, plan.info, plan.atoms, plan.operands, bulk).items()
        if not isinstance(s := graph.by_name[name].stmt, Gemm)
        or runs_alone(s, plan.atoms.get(name), plan.layouts, rules)
    }
