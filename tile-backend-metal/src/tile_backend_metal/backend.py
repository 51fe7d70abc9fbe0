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
from tile_core.hardware import Device, Target, TargetInfo


class MetalBackend(Backend):
    name = "metal"
    api = ApiVersion(1, 2)
    torch_devices = (("mps", False),)
    dlpack_devices = (8,)  # kDLMetal
    host_tensors = True  # memory is one: arrays are copied to buffers that the GPU sees
    preference = 10

    def targets(self) -> Sequence[TargetInfo]:
        from .targets import TARGETS

        return TARGETS

    def info(self, target: Target) -> TargetInfo:
        """The facts of ``target``, its options kept. Raises ``Unsupported`` for a family or option that is none."""
        found = super().info(target)
        if not target.options:
            return found
        from .compiler.options import Options

        Options.of(dict(target.options))
        return replace(found, target=replace(found.target, options=target.options))

    def devices(self) -> Sequence[Device]:
        from .probe import devices

        return devices()

    def runs(self, target: Target, device: Device) -> bool:
        """Families are cumulative: a device runs what was made for an older one ("Metal Feature Set Tables")."""
        from .targets import family

        return family(target.arch) <= family(device.target.arch)

    def lowering(self, info: TargetInfo) -> Lowering:
        from .lowering import MetalLowering

        return MetalLowering(info)

    def codegen(self, info: TargetInfo) -> Codegen:
        from .codegen import MetalCodegen

        return MetalCodegen(info)

    def compiler(self, info: TargetInfo) -> Compiler:
        from .compiler import MetalCompiler

        return MetalCompiler(info)

    def launcher(self, device: Device) -> Launcher:
        from .launcher import MetalLauncher

        return MetalLauncher(device)

    def timer(self, device: Device) -> Timer:
        from .launcher import MetalLauncher
        from .timer import MetalTimer

        return MetalTimer(MetalLauncher(device))

    def emulator(self, info: TargetInfo) -> Emulator:
        from .emulator import MetalEmulator

        return MetalEmulator()

    def checks(self) -> Sequence[Check]:
        from .checks import CHECKS

        return CHECKS
