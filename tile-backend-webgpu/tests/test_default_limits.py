"""The cases of the kit compiled for the limits that every device grants, without subgroups and float16, and run on lavapipe."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tile_core import interpreter
from tile_core.errors import Unsupported
from tile_core.hardware import Device, Target
from tile_core.registry import registry
from tile_core.testing import arguments, requires, stages
from tile_core.testing.kernels import CASES, Case

TINY = Target("webgpu", "default")
INFO = registry().get("webgpu").info(TINY)


@pytest.mark.parametrize("case", [c for c in CASES if not requires.unfit(c, INFO)], ids=str)
def test_case(adapter: Device, case: Case):
    made = arguments.made(case)
    wanted = arguments.copies(made)
    interpreter.run(case.program, wanted)
    try:
        got = stages.launch(case, registry().get("webgpu"), replace(adapter, target=TINY), made)
    except Unsupported as error:
        assert "webgpu:default grants 16384" in error.message
    else:
        arguments.compare(case, got, wanted)
