"""The backend object: which tensors are its, which targets and devices there are, and its roles."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.backend import (
    ApiVersion,
    Backend,
    Check,
    Codegen,
    Compiler,
    Emulator,
    Launcher,
    Lowering,
    Timer,
)
from tile_core.hardware import Device, TargetInfo


class RocmBackend(Backend):
    name = "rocm"
    api = ApiVersion(1, 1)
    torch_devices = (("cuda", True),)
    dlpack_devices = (10,)  # kDLROCM; torch calls its HIP devices "cuda"
    preference = 10

    def targets(self) -> Sequence[TargetInfo]:
        from .targets import TARGETS

        return TARGETS

    def devices(self) -> Sequence[Device]:
        from .probe import devices

        return devices()

    def lowering(self, info: TargetInfo) -> Lowering:
        from .lowering import RocmLowering

        return RocmLowering(info)

    def codegen(self, info: TargetInfo) -> Codegen:
        from .codegen import RocmCodegen

        return RocmCodegen(info)

    def compiler(self, info: TargetInfo) -> Compiler:
        from .compiler import RocmCompiler

        return RocmCompiler(info)

    def launcher(self, device: Device) -> Launcher:
        from .launcher import RocmLauncher

        return RocmLauncher(device)

    def timer(self, device: Device) -> Timer:
        from .launcher import RocmLauncher
        from .timer import RocmTimer

        return RocmTimer(RocmLauncher(device))

    def emulator(self, info: TargetInfo) -> Emulator:
        from .emulator import RocmEmulator

        return RocmEmulator(info)

    def checks(self) -> Sequence[Check]:
        from .checks import CHECKS

        return CHECKS
