"""The architectures that the CuTe DSL is used for: the same hardware, so the same facts, as the CUDA C++ backend's."""

from __future__ import annotations

from dataclasses import replace

from tile_backend_cuda.targets import TARGETS as HARDWARE
from tile_core.hardware import Target

ARCHITECTURES = ("sm_90a", "sm_100a")

TARGETS = tuple(
    replace(info, target=Target("cutedsl", info.target.arch))
    for info in HARDWARE
    if info.target.arch in ARCHITECTURES
)
