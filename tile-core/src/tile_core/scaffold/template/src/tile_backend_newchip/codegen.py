"""Plans in, C++ out: one function for each launch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tile_core.backend import Pass, Source
from tile_core.hardware import TargetInfo
from tile_core.inference.plan import TilePlan
from tile_core.lowering.cplusplus import ATOMICS, SCALARS
from tile_core.lowering.cplusplus_dialect import PLAIN
from tile_core.lowering.entry import Entry, entry_spec
from tile_core.lowering.printer import Printer
from tile_core.lowering.simt.lower import lower_for

from .instructions import INSTRUCTIONS

DIALECT = PLAIN  # dataclasses.replace(PLAIN, barrier=..., types=...) where the language says it otherwise


class NewchipLowering:
    """Plans as they are. Refuse here, with the span, what the hardware cannot do."""

    def legalize(self, plan: TilePlan) -> TilePlan:
        return plan

    def passes(self) -> Sequence[Pass]:
        return ()


class NewchipCodegen:
    """Pure and deterministic: the text is part of the key of the cache of compiled kernels."""

    def __init__(self, info: TargetInfo) -> None:
        self.info = info

    def emit(self, plan: TilePlan) -> Source:
        """The source of all launches. Raises ``Unsupported`` for what the target does not have."""
        program = lower_for(plan, INSTRUCTIONS).program
        names = [f"{plan.program.name}_{n}" for n in range(len(program.launches))]
        entries = [Entry(self.info, program, launch, Printer(DIALECT)) for launch in program.launches]
        text = "\n\n".join("\n".join(_lines(e, name)) for e, name in zip(entries, names, strict=True))
        spec = entry_spec(plan.program, dict(zip(names, entries, strict=True)))
        return Source(f"{SCALARS}{ATOMICS}\n{text}\n", "c++", ".cpp", spec)


def _lines(entry: Entry, name: str) -> Iterator[str]:
    """One entry point. The first block number changes fastest."""
    launch, spell = entry.launch, entry.printer.name
    parameters = (*entry.arguments(), *entry.dimensions(), *entry.workspaces())
    yield f"TILE_KERNEL void {name}({', '.join(f'{type} {given}' for type, given in parameters)}) {{"
    for v, axis in zip(launch.vars, "xyz", strict=False):
        yield f"  const int {spell(v)} = TILE_BLOCK({axis});"
    yield f"  const int {spell(launch.thread_vars[0])} = TILE_THREAD;"
    tiles = tuple(entry.tiles("arena"))
    for line in (*((f"TILE_ARENA({entry.shared});",) if tiles else ()), *tiles, *entry.views()):
        yield f"  {line}"
    yield from entry.printer.block(launch.body, 1)
    yield "}"
