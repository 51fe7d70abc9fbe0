"""The conformance cases under the emulator for the architectures that the conformance kit leaves out: all but the default."""

from __future__ import annotations

import pytest
from oracle import passes

from tile_backend_cuda.backend import CudaBackend
from tile_core.errors import Unsupported
from tile_core.hardware import Target
from tile_core.testing import stages
from tile_core.testing.kernels import CASES, Case

pytest.importorskip("tile_backend_cuda.codegen")


# all cases where the instructions differ; on the other architectures what multiplies matrices
EVERYTHING, PRODUCTS = ("sm_75", "sm_80", "sm_100a"), ("sm_86", "sm_89", "sm_120a")
RUNS = [
    pytest.param(case, arch, id=f"{case}-{arch}")
    for case in CASES
    for arch in (*EVERYTHING, *(PRODUCTS if case.name.startswith(("gemm", "attention")) else ()))
]


@pytest.mark.parametrize(("case", "arch"), RUNS)
def test_case(case: Case, arch: str, emulator: None):
    backend = CudaBackend()
    try:
        source = stages.emit(case, backend, backend.info(Target("cuda", arch)))
    except Unsupported as error:
        pytest.skip(error.message)
    passes(case, source)
