"""The backend object: its targets and devices, and its roles. Modules are imported when a role is asked for."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.backend import ApiVersion, Codegen, Emulator, FactsOnly, Lowering
from tile_core.hardware import Device, TargetInfo


class NewchipBackend(FactsOnly):
    """Derives from ``FactsOnly`` while roles are missing: `compiler` and `launcher` say so when they are asked for."""

    name = "newchip"
    api = ApiVersion(1, 1)  # the interface this was written against, in numbers

    def targets(self) -> Sequence[TargetInfo]:
        from .targets import TARGETS

        return TARGETS

    def devices(self) -> Sequence[Device]:
        return ()  # ask the driver, by ctypes; () where there is none

    def lowering(self, info: TargetInfo) -> Lowering:
        from .codegen import NewchipLowering

        return NewchipLowering()

    def codegen(self, info: TargetInfo) -> Codegen:
        from .codegen import NewchipCodegen

        return NewchipCodegen(info)

    def emulator(self, info: TargetInfo) -> Emulator:
        from .emulator import NewchipEmulator

        return NewchipEmulator(info)
