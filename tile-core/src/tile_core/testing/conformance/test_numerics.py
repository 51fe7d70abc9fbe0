"""Level 3: what a device computes, against the interpreter, over types, extents and operations."""

from __future__ import annotations

import pytest

from tile_core import interpreter
from tile_core.backend import Backend
from tile_core.hardware import Device
from tile_core.testing import arguments, stages
from tile_core.testing.kernels import Case


@pytest.mark.l3
@pytest.mark.conformance
def test_numerics(tile_backend: Backend, tile_device: Device, tile_case: Case) -> None:
    made = arguments.made(tile_case)
    wanted = arguments.copies(made)
    interpreter.run(tile_case.program, wanted)
    arguments.compare(tile_case, stages.launch(tile_case, tile_backend, tile_device, made), wanted)
