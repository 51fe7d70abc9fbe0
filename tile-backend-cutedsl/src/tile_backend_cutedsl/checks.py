"""Rows of ``tile doctor``: the driver, the DSL and the devices."""

from __future__ import annotations

from tile_backend_cuda.probe import DRIVER
from tile_core.checks import devices, library, package

from . import probe

CHECKS = (
    library("driver", (DRIVER,), "install the NVIDIA driver; kernels can be compiled without it"),
    package("CuTe DSL", ("nvidia-cutlass-dsl",)),
    devices(lambda: [d.name for d in probe.devices()], "no Hopper or Blackwell GPU is visible"),
)
