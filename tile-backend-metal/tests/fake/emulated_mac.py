"""A launcher whose device is the machine emulator: calls go the whole way through the runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from tile_backend_metal.emulator import MetalEmulator
from tile_core.backend import Artifact, LaunchSpec, Source
from tile_core.hardware import Device


class EmulatedLauncher:
    def __init__(self, device: Device) -> None:
        self.device = device

    def load(self, artifact: Artifact, launch: LaunchSpec) -> EmulatedKernel:
        return EmulatedKernel(Source(artifact.data.decode(), "metal", ".metal", launch))

    def synchronize(self) -> None: ...

    def current_stream(self) -> None: ...


class EmulatedKernel:
    takes_tensors: Literal[True] = True

    def __init__(self, source: Source) -> None:
        self.source = source

    def __call__(
        self, arguments: Sequence[Any], grids: Sequence[tuple[int, ...]], stream: int | None = None
    ) -> None:
        params = self.source.launch.params
        own = [a for a, p in zip(arguments, params, strict=True) if p.kind != "dim"]
        dims = {p.name: a for a, p in zip(arguments, params, strict=True) if p.kind in ("dim", "scalar")}
        for report in MetalEmulator().run(self.source, own, dims, mode="late"):
            assert report.clean, str(report)
