"""The conformance cases under the emulator for architectures that the kit leaves out, as it takes the default one."""

from __future__ import annotations

import pytest
from hip_oracle import passes
from hip_products import info_of

from tile_core.testing import requires
from tile_core.testing.kernels import CASES, Case

ARCHS = ("gfx90a", "gfx1100")
RUNS = [
    pytest.param(case, arch, id=f"{arch}-{case}")
    for arch in ARCHS
    for case in CASES
    if not requires.unfit(case, info_of(arch))
]
MATRIX = ("gemm-float16", "gemm-bfloat16", "gemm-int8", "gemm-fp8")


@pytest.mark.parametrize(("case", "arch"), RUNS)
def test_case(case: Case, arch: str) -> None:
    text = passes(case, arch, ("late",))
    if case.name.startswith(MATRIX) and "tiny" not in case.name:
        assert ("wmma" if arch.startswith("gfx1") else "mfma") in text.partition("// ---- kernel")[2]
