"""The backend object: which tensors are its, which targets and devices there are."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.backend import ApiVersion, Check, Codegen, FactsOnly, Lowering
from tile_core.hardware import Device, TargetInfo


class CudaBackend(FactsOnly):
    name = "cuda"
    api = ApiVersion(1, 0)
    torch_devices = (("cuda", False),)
    dlpack_devices = (2,)  # kDLCUDA
    preference = 10

    def targets(self) -> Sequence[TargetInfo]:
        from .targets import TARGETS

        return TARGETS

    def devices(self) -> Sequence[Device]:
        from .probe import devices

        return devices()

    def lowering(self, info: TargetInfo) -> Lowering:
        from .lowering import CudaLowering

        return CudaLowering(info)

    def codegen(self, info: TargetInfo) -> Codegen:
        from .codegen import CudaCodegen

        return CudaCodegen(info)

    def checks(self) -> Sequence[Check]:
        from .checks import CHECKS

        return CHECKS
