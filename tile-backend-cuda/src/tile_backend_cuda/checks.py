"""Rows of ``tile doctor``: the driver, the run-time compiler and the devices."""

from __future__ import annotations

from tile_core.checks import devices, library, package

from . import probe

CHECKS = (
    library("driver", (probe.DRIVER,), "install the NVIDIA driver; kernels can be compiled without it"),
    package("NVRTC", ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu13", "nvidia-cuda-nvrtc-cu12")),
    devices(lambda: [d.name for d in probe.devices()], "no NVIDIA GPU is visible: see CUDA_VISIBLE_DEVICES"),
)
