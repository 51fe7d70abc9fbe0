"""Thread-level programs are run by the interpreter and compared with the block-level programs that they come from."""

from __future__ import annotations

import pytest

from tile_core.hardware import Target
from tile_core.inference.infer import infer
from tile_core.interpreter import run
from tile_core.lowering.simt.lower import lower
from tile_core.program import Parallel, TileOp, TileProgram
from tile_core.program.visit import statements
from tile_core.registry import registry
from tile_core.testing import arguments
from tile_core.testing.kernels import CASES, Case

# three shapes of threads and instructions: 32 lanes, warpgroups, 64 lanes
TARGETS = ("cuda:sm_80", "cuda:sm_90a", "rocm:gfx942")


def threads(program: TileProgram, target: str) -> TileProgram:
    wanted = Target.parse(target)
    low = lower(infer(program, registry().get(wanted.backend).info(wanted)))
    assert not any(isinstance(s, (TileOp, Parallel)) for s in statements(low.body))
    return low


# tiles of 64 rows and more are multiplied in another way on the second one only
RUNS = [
    pytest.param(case, target, id=f"{case}-{target}")
    for case in CASES
    for target in (TARGETS[1:2] if case.name.endswith(("64-rows", "128-rows")) else TARGETS)
]


@pytest.mark.parametrize(("case", "target"), RUNS)
def test_agrees_with_the_block_level(case: Case, target: str) -> None:
    made = arguments.made(case)
    wanted = arguments.copies(made)
    run(case.program, wanted)
    run(threads(case.program, target), made)
    arguments.compare(case, made, wanted)
