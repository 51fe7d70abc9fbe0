"""All stages of a compilation, in order: program, plan, source, artifact. Each can be dumped and is timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from .. import settings
from ..backend import Artifact, Backend, ShowsEngines, ShowsIr, Source
from ..errors import Unsupported
from ..graph.text import text as graph_text
from ..hardware import TargetInfo
from ..inference.complete import complete
from ..inference.explain import explain
from ..inference.infer import infer
from ..inference.plan import TilePlan
from ..inference.schedule.chart import text as schedule_text
from ..program import TileProgram
from ..program.text import text as program_text
from ..verification.heard import Emitted
from ..verification.plans import of_plan
from ..verification.refusal import refuse
from .dump import Dump

T = TypeVar("T")


@dataclass(frozen=True)
class Compiled:
    """The result of all stages, and how long each took in milliseconds."""

    plan: TilePlan
    source: Source
    artifact: Artifact
    times: Mapping[str, float] = field(default_factory=dict[str, float])


def make_plan(program: TileProgram, info: TargetInfo) -> TilePlan:
    """The plan of a program, open or not, for a target. Raises ``KernelError`` or ``Unsupported`` at the user's line."""
    completion = complete(program)
    plan = infer(completion.program, info, settings.current().optimal)
    if not completion.notes:
        return plan
    return replace(plan, notes=(*completion.notes, *plan.notes))


def legalized(plan: TilePlan, backend: Backend) -> TilePlan:
    """The plan as the backend can run it, after the backend's own passes."""
    lowering = backend.lowering(plan.info)
    plan = lowering.legalize(plan)
    for step in lowering.passes():
        plan = step(plan)
    return plan


def lowered_text(plan: TilePlan, backend: Backend) -> str:
    """The lowered program of a legalized plan. Raises ``Unsupported`` if the backend has none."""
    codegen = backend.codegen(plan.info)
    if not isinstance(codegen, ShowsIr):
        raise Unsupported(f"{backend.name} prints its source from the plan: it has no other ir")
    return codegen.ir(plan)


def emitted(plan: TilePlan, backend: Backend) -> Sequence[Emitted]:
    """What the backend lowers a plan to, where threads work beside engines, not verified; nothing if it does not show that."""
    plan = legalized(plan, backend)
    codegen = backend.codegen(plan.info)
    with settings.scope(verify=settings.NEVER):
        return codegen.emitted(plan) if isinstance(codegen, ShowsEngines) else ()


def _schedules(plan: TilePlan) -> str:
    return schedule_text(plan.schedules, f"{plan.program.name} for {plan.target}")


def compile_program(
    program: TileProgram, backend: Backend, info: TargetInfo, options: Mapping[str, Any] | None = None
) -> Compiled:
    """Compile a program with a backend.

    Raises:
        KernelError: the kernel is wrong.
        Unsupported: the target cannot do it.
    """
    dump = Dump.wanted(program.name)
    times: dict[str, float] = {}

    def timed(stage: str, run: Callable[[], T]) -> T:
        begin = time.perf_counter()
        out = run()
        times[stage] = (time.perf_counter() - begin) * 1e3
        return out

    dump.write("program", program, program_text)
    plan = timed("plan", lambda: make_plan(program, info))
    dump.write("graph", plan.graph, graph_text)
    dump.write("plan", plan, explain)
    dump.write("schedule", plan, _schedules)
    plan = timed("legalize", lambda: legalized(plan, backend))
    timed("verify", lambda: refuse(of_plan(plan)))
    codegen = backend.codegen(info)
    if isinstance(codegen, ShowsIr):
        dump.write("ir", plan, codegen.ir)
    source = timed("codegen", lambda: codegen.emit(plan))
    dump.write("source", source, lambda s: s.text)
    artifact = timed("compile", lambda: backend.compiler(info).compile(source, dict(options or {})))
    return Compiled(plan, source, artifact, times)
