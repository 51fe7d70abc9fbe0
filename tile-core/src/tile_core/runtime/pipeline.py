"""All stages of a compilation, in order: program, plan, source, artifact. Each can be dumped and is timed."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from .. import settings
from ..backend import Artifact, Backend, Source
from ..graph.text import text as graph_text
from ..hardware import TargetInfo
from ..inference.complete import complete
from ..inference.explain import explain
from ..inference.infer import infer
from ..inference.plan import TilePlan
from ..program import TileProgram
from ..program.text import text as program_text

log = logging.getLogger("tile")

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
    plan = infer(completion.program, info)
    if not completion.notes:
        return plan
    from dataclasses import replace

    return replace(plan, notes=(*completion.notes, *plan.notes))


def legalized(plan: TilePlan, backend: Backend) -> TilePlan:
    """The plan as the backend can run it, after the backend's own passes."""
    lowering = backend.lowering(plan.info)
    plan = lowering.legalize(plan)
    for step in lowering.passes():
        plan = step(plan)
    return plan


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

    def timed(stage: str, run: Callable[[], T], show: Callable[[T], str] | None = None) -> T:
        begin = time.perf_counter()
        out = run()
        times[stage] = (time.perf_counter() - begin) * 1e3
        if show is not None:
            dump.write(stage, out, show)
        return out

    dump.write("program", program, program_text)
    plan = timed("plan", lambda: make_plan(program, info), explain)
    dump.write("graph", plan.graph, graph_text)
    plan = timed("legalize", lambda: legalized(plan, backend))
    source = timed("codegen", lambda: backend.codegen(info).emit(plan), lambda s: s.text)
    dump.write("source", source, lambda s: s.text)
    artifact = timed("compile", lambda: backend.compiler(info).compile(source, dict(options or {})))
    log.debug(
        "%s for %s: %s", program.name, info.target, ", ".join(f"{k} {v:.1f} ms" for k, v in times.items())
    )
    return Compiled(plan, source, artifact, times)


@dataclass
class Dump:
    """Writes the stages named by ``TILE_DUMP`` to a numbered folder."""

    name: str
    stages: frozenset[str]
    folder: Path | None = None
    count: int = 0

    @staticmethod
    def wanted(name: str) -> Dump:
        return Dump(name, settings.current().dumped)

    def write(self, stage: str, value: T, show: Callable[[T], str]) -> None:
        """Write a stage if it is wanted. The folder is printed once."""
        if stage not in self.stages:
            return
        if self.folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix=f"tile-{self.name}-"))
            print(f"tile: stages of {self.name} are in {self.folder}")
        (self.folder / f"{self.count:02d}_{stage}.txt").write_text(show(value), encoding="utf8")
        self.count += 1
