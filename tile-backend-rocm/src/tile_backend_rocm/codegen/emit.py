"""Plans to HIP C++ text without any include: one ``__global__`` function for each launch."""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.backend import Source
from tile_core.hardware import TargetInfo
from tile_core.inference.plan import TilePlan
from tile_core.lowering.entry import Entry, entry_names, entry_spec
from tile_core.lowering.printer import Printer
from tile_core.lowering.simt.lower import lower_for
from tile_core.program import Launch, TileProgram

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
        entries = {
            name: _Entry(self.info, lowered, launch, name)
            for name, launch in zip(entry_names(plan.program), lowered.launches, strict=True)
        }
        kernels = "\n\n".join("\n".join(e.lines()) for e in entries.values())
        spec = entry_spec(plan.program, {name: e.entry for name, e in entries.items()})
        return Source(complete(f"{BASE}\n{kernels}\n"), "hip", ".hip", spec)


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
