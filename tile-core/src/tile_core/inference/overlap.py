"""What runs while something else does: adds engines, boxes, schedules and shared copies to a plan that has layouts and atoms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..program import Gemm
from .adding import box_adds
from .alone import runs_alone
from .bulk import BoxCopy, bulk_copies, lead_copies
from .plan import TilePlan
from .schedule.engines import COPY, engine_of
from .schedule.loops import schedules
from .schedule.unscheduled import unscheduled
from .sharing import sharing


def overlapped(plan: TilePlan, boxes: bool = True, optimal: bool = False) -> TilePlan:
    """The plan with what its asynchronous engines do. Without ``boxes`` the threads copy, for tensors that no box fits.
    ``optimal``: a solver looks for better schedules than the search finds.

    Raises:
        KernelError: rings that the user pinned do not fit into shared memory.
    """
    bulk = bulk_copies(plan.graph, plan.info, plan.layouts) if boxes else {}
    adds = box_adds(plan.graph, plan.info, plan.layouts, plan.atoms) if boxes else {}
    engines = _engines(plan, bulk)
    useful = plan.info.bulk is not None or COPY in engines.values()
    told = boxes and any(e.name == COPY for e in plan.info.engines)
    given = plan.graph, plan.info, plan.atoms, plan.layouts, engines
    made = schedules(*given, bulk=bulk, optimal=optimal, adds=adds) if useful else {}
    return replace(
        plan,
        bulk=bulk,
        adds=adds,
        leads=lead_copies(plan.graph, plan.info, plan.layouts) if boxes else {},
        engines=engines,
        schedules=made,
        notes=(*plan.notes, *(unscheduled(plan.graph, made) if told else ())),
        sharing={
            n: found
            for n, s in enumerate(plan.program.launches)
            if (found := sharing(s, plan.graph, plan.info, bulk, plan.atoms))
        },
    )


def _engines(plan: TilePlan, bulk: Mapping[str, BoxCopy]) -> dict[str, str]:
    """The asynchronous engine of each node; of an engine that signals by itself only what it can do without help."""
    rules, graph = plan.info.bulk, plan.graph
    staged = (*plan.operands, *(m.node for m in plan.moves))
    if rules is None:
        return engine_of(graph, plan.info, plan.atoms, staged)
    return {
        name: engine
        for name, engine in engine_of(graph, plan.info, plan.atoms, staged, bulk).items()
        if not isinstance(s := graph.by_name[name].stmt, Gemm)
        or runs_alone(s, plan.atoms.get(name), plan.layouts, rules)
    }
