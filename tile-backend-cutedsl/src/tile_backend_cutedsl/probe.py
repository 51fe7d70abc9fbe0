"""NVIDIA GPUs that the CuTe DSL is used for, out of those that the CUDA backend sees."""

from __future__ import annotations

from dataclasses import replace

from tile_backend_cuda import probe
from tile_core.hardware import Device, Target

from .targets import ARCHITECTURES


def devices() -> tuple[Device, ...]:
    """Devices of the supported architectures, numbered as the driver does. () without a driver or a device."""
    return tuple(
        replace(device, target=Target("cutedsl", device.target.arch))
        for device in probe.devices()
        if device.target.arch in ARCHITECTURES
    )
