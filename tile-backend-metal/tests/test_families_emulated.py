"""Products and attention for the first family, which has no bfloat, as emulated source; the kit runs the default target."""

from __future__ import annotations

import pytest

from tile_backend_metal.backend import MetalBackend
from tile_backend_metal.compiler.lint import faults
from tile_core import interpreter
from tile_core.hardware import Target
from tile_core.testing import arguments, requires, stages
from tile_core.testing.kernels import CASES, Case

METAL = MetalBackend()
APPLE7 = METAL.info(Target("metal", "apple7"))
OWN = [c for c in CASES if not requires.unfit(c, APPLE7)]


@pytest.mark.parametrize("case", [c for c in OWN if c.name.startswith(("gemm", "attention"))], ids=str)
def test_apple7(case: Case, emulator: None) -> None:
    made = arguments.made(case)
    wanted = arguments.copies(made)
    interpreter.run(case.program, wanted)
    source = stages.emit(case, METAL, APPLE7)
    assert source.launch.extra["language"] == "3.0"
    for report in METAL.emulator(APPLE7).run(source, made, case.dims, mode="late"):
        assert report.clean, str(report)
    arguments.compare(case, made, wanted)


@pytest.mark.parametrize("arch", ["apple7", "apple9"])
def test_every_case_keeps_the_rules(arch: str) -> None:
    info = METAL.info(Target("metal", arch))
    for case in CASES:
        if not requires.unfit(case, info):
            source = stages.emit(case, METAL, info)
            assert faults(source.text, source.launch.extra["language"]) == (), case.name


def test_products_use_matrices() -> None:
    for case in OWN:
        if case.name.startswith("gemm-float16"):
            assert "tile_simdgroup_multiply(&" in stages.emit(case, METAL, APPLE7).text, case.name
