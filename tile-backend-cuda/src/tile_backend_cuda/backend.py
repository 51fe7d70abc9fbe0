"""The backend object: which tensors are its, which targets and devices there are, and its roles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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
from tile_core.errors import Unsupported
from tile_core.hardware import Device, Target, TargetInfo


class CudaBackend(Backend):
    name = "cuda"
    api = ApiVersion(1, 1)
    torch_devices = (("cuda", False),)
    dlpack_devices = (2,)  # kDLCUDA
    preference = 10

    def targets(self) -> Sequence[TargetInfo]:
        from .targets import TARGETS

        return TARGETS

    def info(self, target: Target) -> TargetInfo:
        """The facts of ``target``, its options kept. Raises ``Unsupported`` for an architecture or option that is none."""
        found = super().info(target)
        if not target.options:
            return found
        from .compiler.options import Options

        if Options.of(dict(target.options)).pdl and "griddep" not in found.features:
            able = ", ".join(t.target.arch for t in self.targets() if "griddep" in t.features)
            raise Unsupported(
                f"{target.arch} has no programmatic dependent launch (pdl=1)",
                help=f"leave the option out, or compile for one of {able}",
            )
        return replace(found, target=replace(found.target, options=target.options))

    def devices(self) -> Sequence[Device]:
        from .probe import devices

        return devices()

    def runs(self, target: Target, device: Device) -> bool:
        from .probe import runs

        return runs(target.arch, device.target.arch)

    def lowering(self, info: TargetInfo) -> Lowering:
        from .lowering import CudaLowering

        return CudaLowering(info)

    def codegen(self, info: TargetInfo) -> Codegen:
        from .codegen import CudaCodegen

        return CudaCodegen(info)

    def compiler(self, info: TargetInfo) -> Compiler:
        from .compiler import CudaCompiler

        return CudaCompiler(info)

    def launcher(self, device: Device) -> Launcher:
        from .launcher import CudaLauncher

        return CudaLauncher(device)

    def timer(self, device: Device) -> Timer:
        from .launcher import CudaLauncher
        from .timer import CudaTimer

        return CudaTimer(CudaLauncher(device))

    def emulator(self, info: TargetInfo) -> Emulator:
        from .prelude.emulate import CudaEmulator

        return CudaEmulator()

    def checks(self) -> Sequence[Check]:
        from .checks import CHECKS

        return CHECKS
