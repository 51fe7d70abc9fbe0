"""The launcher role: an artifact becomes a kernel that takes tensors of torch on the GPU, or arrays of the host."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from threading import Lock
from typing import Any, Literal

from tile_core.backend import Artifact, LaunchSpec
from tile_core.errors import InternalError, NoDevice
from tile_core.hardware import Device

from .. import probe
from .dispatch import Dispatch, dispatches
from .objective import ObjectiveProgram
from .torch_mps import TorchProgram

KINDS = ("msl", "metallib")


class MetalLauncher:
    """Loads MSL or metallibs onto the Mac's GPU. Raises ``NoDevice`` elsewhere than on macOS."""

    def __init__(self, device: Device) -> None:
        if not probe.on_mac():
            raise NoDevice(
                "Metal kernels run on macOS only",
                help="compile and export here, and run the bundle on a Mac; or name another target",
            )
        self.device = device

    def load(self, artifact: Artifact, launch: LaunchSpec) -> MetalKernel:
        """A kernel ready to run; Metal sees it with the first call, when it is known whose memory it gets."""
        if artifact.kind not in KINDS:
            raise InternalError(f"the Metal launcher loads {' and '.join(KINDS)}, this is {artifact.kind}")
        return MetalKernel(self, artifact, launch)

    def synchronize(self) -> None:
        """Wait for torch's work; calls with arrays of the host have waited."""
        torch = sys.modules.get("torch")
        if torch is not None and torch.backends.mps.is_available():
            torch.mps.synchronize()

    def current_stream(self) -> None:
        return None


class MetalKernel:
    """A loaded kernel. Threads may share it."""

    takes_tensors: Literal[True] = True

    def __init__(self, launcher: MetalLauncher, artifact: Artifact, launch: LaunchSpec) -> None:
        self.launcher = launcher
        self.artifact = artifact
        self.spec = launch
        self._lock = Lock()
        self._programs: dict[str, TorchProgram | ObjectiveProgram] = {}

    def __call__(
        self, arguments: Sequence[Any], grids: Sequence[tuple[int, ...]], stream: int | None = None
    ) -> None:
        """Launch with checked values, tensors as the caller gave them. ``stream`` has no meaning here.

        Raises:
            ArgumentError: the grid is larger than Metal runs, or a tensor is where Metal cannot reach it.
            BackendError: torch or PyObjC cannot run it; the message says why.
        """
        calls = dispatches(self.spec, arguments, grids)
        if calls:
            self._program(calls).run(calls)

    def _program(self, calls: Sequence[Dispatch]) -> TorchProgram | ObjectiveProgram:
        way = "torch" if any(_on_mps(a) for call in calls for a in call.arguments) else "objective"
        with self._lock:
            if way not in self._programs:
                self._programs[way] = self._load(way)
            return self._programs[way]

    def _load(self, way: str) -> TorchProgram | ObjectiveProgram:
        language: str = self.spec.extra["language"]
        made = (
            TorchProgram(sys.modules["torch"], self.artifact)
            if way == "torch"
            else ObjectiveProgram(self.artifact, language)
        )
        if self.spec.extra.get("ordered"):
            made.check_order(self.launcher.device.name)
        return made


def _on_mps(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor) and value.device.type == "mps"
