"""Level 3 without a device: what the generated source computes under the backend's emulator, against the interpreter."""

from __future__ import annotations

import pytest

from tile_core import interpreter
from tile_core.backend import Backend
from tile_core.hardware import TargetInfo
from tile_core.testing import arguments, stages
from tile_core.testing.kernels import Case

MODES = ("late", "early", "random")


@pytest.mark.l3
@pytest.mark.conformance
def test_emulated(tile_backend: Backend, tile_emulated: TargetInfo, tile_case: Case) -> None:
    made = arguments.made(tile_case)
    wanted = arguments.copies(made)
    interpreter.run(tile_case.program, wanted)
    source = stages.emit(tile_case, tile_backend, tile_emulated)
    for mode in MODES:
        got = arguments.copies(made)
        for report in tile_backend.emulator(tile_emulated).run(source, got, tile_case.dims, mode=mode):
            assert report.clean, str(report)
        arguments.compare(tile_case, got, wanted)
