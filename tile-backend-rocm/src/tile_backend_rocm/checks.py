"""Rows of ``tile doctor``: the driver, the runtime, the compiler and the devices."""

from __future__ import annotations

from tile_core.backend import Check, Finding
from tile_core.checks import devices, library, program

from . import probe


def _driver() -> Finding:
    if probe.TOPOLOGY.is_dir():
        return Finding("ok", "amdgpu (KFD)")
    return Finding(
        "error", "the amdgpu kernel driver is not loaded", "install it; kernels can be compiled without"
    )


CHECKS = (
    Check("driver", _driver),
    library("HIP runtime", probe.RUNTIMES, "install ROCm, or put its lib folder on LD_LIBRARY_PATH"),
    program(
        "compiler",
        ("clang-19", "amdclang++", "clang"),
        "install clang 19 or newer with the AMDGPU target, and lld",
    ),
    devices(lambda: [d.name for d in probe.devices()], "no AMD GPU is visible: see HIP_VISIBLE_DEVICES"),
)
