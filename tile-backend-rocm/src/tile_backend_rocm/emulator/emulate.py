"""Runs HIP source under the machine emulator: a kernel's text and numpy arguments in, a report out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tile_core.backend import Source
from tile_core.hardware import TargetInfo
from tile_core.testing import machine

from ..prelude.table import MARK, host_prelude

MACHINE = Path(__file__).parent / "machine"


def run(text: str, entry: str, arguments: Sequence[Any], *, wave: int, **launch: Any) -> machine.Report:
    """``machine.run`` for HIP: ``text`` is a kernel's text or a whole source; ``launch`` as there. ``wave``: 32 or 64 lanes."""
    kernel = text.split(MARK, 1)[-1]
    prelude = machine.Prelude(
        host_prelude(kernel), tuple(sorted(MACHINE.glob("*.cpp"))), (MACHINE,), subgroup=wave
    )
    return machine.run(kernel, prelude, entry, arguments, **launch)


class RocmEmulator:
    """Every launch of a generated source, in order, with waves of the target's size."""

    def __init__(self, info: TargetInfo) -> None:
        self.info = info

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
        one = partial(run, wave=self.info.subgroup)
        return machine.run_source(source, one, arguments, dims, mode=mode, seed=seed, timeout=timeout)
