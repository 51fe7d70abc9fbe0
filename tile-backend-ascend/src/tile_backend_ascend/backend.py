"""The backend object: which tensors are its, which targets and devices there are."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.backend import ApiVersion, Check, FactsOnly
from tile_core.hardware import Device, TargetInfo


class AscendBackend(FactsOnly):
    name = "ascend"
    api = ApiVersion(1, 0)
    torch_devices = (("npu", False),)
    dlpack_devices = ()  # DLPack has only kDLExtDev for it, which says nothing
    preference = 10

    def targets(self) -> Sequence[TargetInfo]:
        from .targets import TARGETS

        return TARGETS

    def devices(self) -> Sequence[Device]:
        from .probe import devices

        return devices()

    def checks(self) -> Sequence[Check]:
        from .checks import CHECKS

        return CHECKS
