"""The backend object: which tensors are its, which targets and devices there are."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.backend import ApiVersion, Check, FactsOnly
from tile_core.hardware import Device, TargetInfo


class WebgpuBackend(FactsOnly):
    name = "webgpu"
    api = ApiVersion(1, 0)
    torch_devices = ()
    dlpack_devices = (15,)  # kDLWebGPU
    preference = 0

    def targets(self) -> Sequence[TargetInfo]:
        from .targets import TARGETS

        return TARGETS

    def devices(self) -> Sequence[Device]:
        from .probe import devices

        return devices()

    def checks(self) -> Sequence[Check]:
        from .checks import CHECKS

        return CHECKS
