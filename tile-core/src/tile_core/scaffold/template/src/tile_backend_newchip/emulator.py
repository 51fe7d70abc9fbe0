"""Generated sources on the machine emulator: what the words of the source mean on the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tile_core.backend import Source
from tile_core.hardware import TargetInfo
from tile_core.testing import machine

MACHINE = Path(__file__).parent / "machine"


class NewchipEmulator:
    """Every launch of a source, in order, with subgroups of the target's size."""

    def __init__(self, info: TargetInfo) -> None:
        self.prelude = machine.Prelude(
            '#include "newchip.h"\n', tuple(sorted(MACHINE.glob("*.cpp"))), (MACHINE,), info.subgroup
        )

    def run(
        self,
        source: Source,
        arguments: Sequence[Any],
        dims: Mapping[str, int],
        *,
        mode: str = "early",
        seed: int = 0,
        timeout: float = 120.0,
    ) -> list[machine.Report]:
        def one(text: str, entry: str, values: Sequence[Any], **launch: Any) -> machine.Report:
            return machine.run(text, self.prelude, entry, values, **launch)

        return machine.run_source(source, one, arguments, dims, mode=mode, seed=seed, timeout=timeout)
