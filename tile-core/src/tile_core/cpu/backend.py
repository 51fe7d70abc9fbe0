"""The ``cpu`` backend: one object that hands out its roles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..backend import ApiVersion, Backend, Check, Codegen, Compiler, Launcher, Lowering
from ..hardware import Device, TargetInfo


class CpuBackend(Backend):
    """Compiles for the processor of this machine, or for a portable level of it. Always has one device."""

    name: ClassVar[str] = "cpu"
    api: ClassVar[ApiVersion] = ApiVersion(1, 0)
    torch_devices = (("cpu", False), ("cpu", True))
    dlpack_devices = (1,)  # kDLCPU of dlpack.h

    def targets(self) -> Sequence[TargetInfo]:
        from .targets import targets

        return targets()

    def devices(self) -> Sequence[Device]:
        import platform

        return (Device(self.targets()[0].target, 0, platform.processor() or platform.machine(), torch="cpu"),)

    def lowering(self, info: TargetInfo) -> Lowering:
        from .legalize import CpuLowering

        return CpuLowering()

    def codegen(self, info: TargetInfo) -> Codegen:
        from .codegen import CpuCodegen

        return CpuCodegen(info)

    def compiler(self, info: TargetInfo) -> Compiler:
        from .compiler import CpuCompiler

        return CpuCompiler(info)

    def launcher(self, device: Device) -> Launcher:
        from .launcher import CpuLauncher

        return CpuLauncher()

    def checks(self) -> Sequence[Check]:
        from .checks import CHECKS

        return CHECKS
