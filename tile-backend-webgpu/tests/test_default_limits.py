"""The cases of the kit compiled for the limits that every device grants, without subgroups and float16, and run on lavapipe."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tile_core import interpreter
from tile_core.hardware import Device, Target
from tile_core.registry import registry
from tile_core.testing import arguments, requires, stages
from tile_core.testing.kernels import CASES, Case

TINY = Target("webgpu", "default")
INFO = registry().get("webgpu").info(TINY)


# tiles of more than 16 KB
LARGE = {"gemm-bfloat16-nt-128-rows", "gemm-bfloat16-nn-128-rows", "attention-float16-64-rows"}
FITTING = [c for c in CASES if str(c) not in LARGE and not requires.unfit(c, INFO)]


@pytest.mark.parametrize("case", FITTING, ids=str)
def test_case(adapter: Device, case: Case):
    made = arguments.made(case)
    wanted = arguments.copies(made)
    interpreter.run(case.program, wanted)
    got = stages.launch(case, registry().get("webgpu"), replace(adapter, target=TINY), made)
    arguments.compare(case, got, wanted)
