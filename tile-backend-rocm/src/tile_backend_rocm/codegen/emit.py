"""Plans to HIP C++ text without any include: one ``__global__`` function for each launch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tile_core.backend import Source
from tile_core.expr import Expr, text
from tile_core.hardware import TargetInfo
from tile_core.inference.plan import TilePlan
from tile_core.lowering.entry import Entry
from tile_core.lowering.printer import Printer
from tile_core.lowering.simt.lower import lower_for
from tile_core.program import Launch, TileProgram
from tile_core.signature import launch_params, launch_spec, workspaces

from ..prelude.table import complete
from .base import BASE
from .dialect import HIP
from .instructions import instructions


class RocmCodegen:
    """Emits HIP C++. Pure and deterministic."""

    def __init__(self, info: TargetInfo) -> None:
        self.info = info

    def emit(self, plan: TilePlan) -> Source:
        """The source of all launches.

        Raises:
            Unsupported: a type, function or amount of shared memory that the architecture does not have, with the span.
        """
        lowered = lower_for(plan, instructions(self.info)).program
        parts: list[str] = []
        launches: dict[str, Launch] = {}
        extra: dict[str, Any] = {"shared": {}, "parameters": {}}
        own = [p.name for p in launch_params(plan.program)]
        held = [f"workspace{k}" for k in range(len(workspaces(plan.program)))]
        for n, launch in enumerate(lowered.launches):
            name = f"{plan.program.name}_{n}"
            entry = _Entry(self.info, lowered, launch, name)
            parts.append("\n".join(entry.lines()))
            launches[name] = launch
            extra["shared"][name] = entry.entry.shared
            extra["parameters"][name] = (*own, *held)
        extra["workspaces"] = tuple(
            (tuple(text(d) if isinstance(d, Expr) else d for d in b.shape), b.dtype.bytes)
            for b in workspaces(plan.program)
        )
        spec = launch_spec(plan.program, list(launches), extra, list(launches.values()))
        return Source(complete(BASE + "\n" + "\n\n".join(parts) + "\n"), "hip", ".hip", spec)


class _Entry:
    """One ``__global__`` function."""

    def __init__(self, info: TargetInfo, program: TileProgram, launch: Launch, name: str) -> None:
        self.name = name
        self.printer = Printer(HIP)
        self.entry = Entry(info, program, launch, self.printer)

    def lines(self) -> Iterator[str]:
        launch = self.entry.launch
        parameters = (*self.entry.arguments(), *self.entry.dimensions(), *self.entry.workspaces())
        given = ", ".join(f"{type} {name}" for type, name in parameters)
        yield f'extern "C" __global__ void __launch_bounds__({launch.thread_count}) {self.name}({given}) {{'
        numbers = tuple(self.numbers(launch))
        tiles = tuple(self.entry.tiles("arena"))
        # of a size that the compiler knows: it tells how many blocks a compute unit holds
        arena = (f"TILE_ARENA({self.entry.shared});",) if tiles else ()
        for line in (*arena, *numbers, *tiles, *self.entry.views()):
            yield f"  {line}"
        yield from self.printer.block(launch.body, 1)
        yield "}"

    def numbers(self, launch: Launch) -> Iterator[str]:
        """Block numbers and this thread's number. The first block number changes fastest."""
        for v, axis in zip(launch.vars, "xyz", strict=False):
            yield f"const int {self.printer.name(v)} = TILE_BLOCK({axis});"
        yield f"const int {self.printer.name(launch.thread_vars[0])} = TILE_THREAD;"
