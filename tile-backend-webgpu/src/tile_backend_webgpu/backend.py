"""The backend object: which targets and devices there are, and its roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tile_core.backend import (
    ApiVersion,
    Artifact,
    Backend,
    Check,
    Codegen,
    Compiler,
    Launcher,
    Lowering,
    Source,
    Timer,
)
from tile_core.hardware import Device, Target, TargetInfo


class WebgpuBackend(Backend):
    """Takes tensors in the host's memory, which it copies; so it is used where it is named, and declares no devices."""

    name = "webgpu"
    api = ApiVersion(1, 1)
    preference = 0

    def targets(self) -> Sequence[TargetInfo]:
        from .targets import TARGETS

        return TARGETS

    def devices(self) -> Sequence[Device]:
        from .probe import devices

        return devices()

    def runs(self, target: Target, device: Device) -> bool:
        """What is compiled for the default limits runs everywhere."""
        return target.arch == "default" or super().runs(target, device)

    def lowering(self, info: TargetInfo) -> Lowering:
        from .lowering import WebgpuLowering

        return WebgpuLowering(info)

    def codegen(self, info: TargetInfo) -> Codegen:
        from .codegen.emit import WgslCodegen

        return WgslCodegen(info)

    def compiler(self, info: TargetInfo) -> Compiler:
        from .compiler.compiler import WebgpuCompiler

        return WebgpuCompiler(info)

    def launcher(self, device: Device) -> Launcher:
        from .launcher.launcher import WebgpuLauncher

        return WebgpuLauncher(device)

    def timer(self, device: Device) -> Timer:
        from .launcher.session import opened
        from .timer import PassTimer

        session = opened(device.index)
        return PassTimer(session) if session.has_clock else super().timer(device)

    def page(self, name: str, source: Source, artifact: Artifact) -> Mapping[str, bytes]:
        """The files of a web page that runs a kernel."""
        from .page.page import page

        return page(name, source, artifact)

    def checks(self) -> Sequence[Check]:
        from .checks import CHECKS

        return CHECKS
