"""Code objects onto one device: loaded, and made callable."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tile_core.backend import Artifact, LaunchSpec
from tile_core.errors import ArgumentError, BackendError, InternalError
from tile_core.hardware import Device
from tile_core.runtime.binding import evaluate

from .packing import packed
from .runtime import Runtime, runtime

MOST_BLOCKS = 2**31 - 1
MOST_THREADS = 2**32 - 1  # work-items along one dimension: HSA kernel dispatch packet, grid_size


class RocmLauncher:
    """Loads code objects onto one device. ``library`` stands in for the runtime in tests."""

    def __init__(self, device: Device, library: Runtime | None = None) -> None:
        self.device = device
        self.hip = library or runtime()

    def load(self, artifact: Artifact, launch: LaunchSpec) -> RocmKernel:
        """A kernel ready to run. Raises ``BackendError``: the device cannot load it; the message says why."""
        if artifact.kind != "hsaco":
            raise InternalError(f"the HIP launcher loads code objects, this is {artifact.kind}")
        module = ctypes.c_void_p()
        with self.hip.current(self.device.index):
            # a module stays loaded: a launch may still be running when its last Python reference goes
            try:
                self.hip("hipModuleLoadData", ctypes.byref(module), artifact.data)
            except BackendError as error:
                who = f"{self.device.name} is {self.device.target.arch}"
                raise BackendError(error.message, why=who, help=error.help) from error
            functions = [self._function(module, name) for name, _, _ in launch.entries]
        return RocmKernel(self, launch, functions)

    def _function(self, module: ctypes.c_void_p, name: str) -> ctypes.c_void_p:
        function = ctypes.c_void_p()
        self.hip("hipModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def synchronize(self) -> None:
        """Wait for everything on the device."""
        with self.hip.current(self.device.index):
            self.hip("hipDeviceSynchronize")

    def current_stream(self) -> int:
        """The stream that torch works on, if it is a HIP build; 0, the null stream, without it."""
        torch = sys.modules.get("torch")
        if torch is None or not torch.version.hip or not torch.cuda.is_initialized():
            return 0
        # torch.cuda.current_stream makes an object, which takes far longer
        return torch._C._cuda_getCurrentRawStream(self.device.index)


class RocmKernel:
    """A loaded kernel. Threads may share it."""

    def __init__(
        self, launcher: RocmLauncher, launch: LaunchSpec, functions: Sequence[ctypes.c_void_p]
    ) -> None:
        self.launcher = launcher
        self.launch = launch
        self.functions = functions

    def __call__(
        self, arguments: Sequence[int | float], grids: Sequence[tuple[int, ...]], stream: int | None = None
    ) -> None:
        """Launch all entries whose grid has no zero, with checked values.

        Raises:
            ArgumentError: the grid is larger than a device runs.
            BackendError: the runtime refused; the message says why.
        """
        for (name, _, threads), grid in zip(self.launch.entries, grids, strict=True):
            _fits(name, _three(grid), _three(threads))
        where = self.launcher.current_stream() if stream is None else stream
        held = dict(zip((p.name for p in self.launch.params), packed(self.launch.params, arguments)))
        values = dict(zip(held, arguments))
        hip = self.launcher.hip
        with hip.current(self.launcher.device.index):
            spaces = self._allocated(values, where)
            try:
                for n, grid in enumerate(grids):
                    if all(grid):
                        self._launch(n, grid, {**held, **spaces}, where)
            finally:
                for space in spaces.values():
                    hip("hipFreeAsync", space, ctypes.c_void_p(where))

    def _allocated(self, values: Mapping[str, Any], stream: int) -> dict[str, ctypes.c_void_p]:
        out: dict[str, ctypes.c_void_p] = {}
        for n, (shape, size) in enumerate(self.launch.extra.get("workspaces", ())):
            bytes_ = size
            for extent in shape:
                bytes_ *= evaluate(extent, values)
            space = out[f"workspace{n}"] = ctypes.c_void_p()
            count = ctypes.c_size_t(max(1, bytes_))
            self.launcher.hip("hipMallocAsync", ctypes.byref(space), count, ctypes.c_void_p(stream))
        return out

    def _launch(self, n: int, grid: Sequence[int], held: Mapping[str, Any], stream: int) -> None:
        name, _, threads = self.launch.entries[n]
        wanted = self.launch.extra.get("parameters", {}).get(name, tuple(held))
        pointers = (ctypes.c_void_p * max(1, len(wanted)))(*(ctypes.addressof(held[p]) for p in wanted))
        sizes = (ctypes.c_uint(x) for x in (*_three(grid), *_three(threads)))
        # no dynamic LDS: its size is in the code object
        rest = (ctypes.c_uint(0), ctypes.c_void_p(stream), pointers, None)
        self.launcher.hip("hipModuleLaunchKernel", self.functions[n], *sizes, *rest)


def _three(extents: Sequence[int]) -> tuple[int, ...]:
    return (*extents, 1, 1)[:3]


def _fits(name: str, grid: Sequence[int], threads: Sequence[int]) -> None:
    if any(g > MOST_BLOCKS or g * t > MOST_THREADS for g, t in zip(grid, threads)):
        raise ArgumentError(
            f"{name} has a grid of {' x '.join(map(str, grid))} blocks",
            why=f"a device runs at most {MOST_THREADS} threads along one dimension",
            help="use larger tiles, or put the largest extent first",
        )
