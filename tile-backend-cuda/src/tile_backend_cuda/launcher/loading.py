"""Cubins onto one device: loaded, checked against its limits, and made callable."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from tile_core.backend import Artifact, LaunchSpec
from tile_core.dtypes import dtype
from tile_core.errors import ArgumentError, BackendError, InternalError, Unsupported
from tile_core.hardware import Device

from . import native
from .driver import (
    DYNAMIC_SHARED,
    MAX_SHARED_PER_BLOCK,
    MAX_THREADS,
    REGISTERS,
    STATIC_SHARED,
    WIDE_CLUSTERS,
    Driver,
    driver,
)
from .outline import RAW, Entry, Outline, outline
from .portable import PortablePlan

GRID = (2**31 - 1, 65535, 65535)  # CUDA C++ Programming Guide, Compute Capabilities
PORTABLE_CLUSTER = 8  # blocks; more is for the kernel to allow


class CudaLauncher:
    """Loads cubins onto one device. ``library`` and ``extension`` stand in for the driver and the native launcher in tests."""

    def __init__(
        self,
        device: Device,
        library: Driver | None = None,
        extension: ModuleType | None = None,
        *,
        portable: bool = False,
        device_type: int = native.CUDA,
    ) -> None:
        self.device = device
        self.driver = library or driver()
        self.extension = None if portable else extension or native.module()
        self.device_type = device_type

    def load(self, artifact: Artifact, launch: LaunchSpec) -> CudaKernel:
        """A kernel ready to run.

        Raises:
            BackendError: the device cannot load it; the message says why.
            Unsupported: it asks for more than the device has.
        """
        if artifact.kind != "cubin":
            raise InternalError(f"the CUDA launcher loads cubins, this is {artifact.kind}")
        plan = outline(launch)
        index = self.device.index
        with self.driver.current(index):
            # a library stays loaded: a launch may still be running when its last Python reference goes
            library = ctypes.c_void_p()
            self._read(library, artifact.data)
            functions = [self._function(library, entry) for entry in plan.entries]
        return CudaKernel(self, plan, functions)

    def _read(self, library: ctypes.c_void_p, data: bytes) -> None:
        try:
            self.driver("cuLibraryLoadData", ctypes.byref(library), data, None, None, 0, None, None, 0)
        except BackendError as error:
            who = f"the driver is of CUDA {self.driver.version}, {self.device.name} is {self.device.target.arch}"
            raise BackendError(error.message, why=who, help=error.help) from error

    def _function(self, library: ctypes.c_void_p, entry: Entry) -> int:
        kernel, loaded = ctypes.c_void_p(), ctypes.c_void_p()
        self.driver("cuLibraryGetKernel", ctypes.byref(kernel), library, entry.name.encode())
        # now, not at the first launch, which may be inside a graph's capture
        self.driver("cuKernelGetFunction", ctypes.byref(loaded), kernel)
        self._check(kernel, entry)
        device = self.driver.device(self.device.index)
        if entry.shared:
            self.driver("cuKernelSetAttribute", DYNAMIC_SHARED, entry.shared, kernel, device)
        if entry.cluster and entry.cluster[0] * entry.cluster[1] * entry.cluster[2] > PORTABLE_CLUSTER:
            self.driver("cuKernelSetAttribute", WIDE_CLUSTERS, 1, kernel, device)
        return kernel.value or 0

    def _check(self, kernel: ctypes.c_void_p, entry: Entry) -> None:
        """Raise ``Unsupported`` if the device has less than the kernel needs."""
        most = self.driver.attribute(MAX_SHARED_PER_BLOCK, self.device.index)
        shared = self._attribute(kernel, STATIC_SHARED) + entry.shared
        if shared > most:
            raise Unsupported(
                f"{entry.name} needs {shared} bytes of shared memory in each block, {self.device.name} has {most}",
                help="use smaller tiles or fewer stages",
            )
        threads = self._attribute(kernel, MAX_THREADS)
        if entry.threads > threads:
            registers = self._attribute(kernel, REGISTERS)
            raise Unsupported(
                f"{entry.name} runs {entry.threads} threads in a block, {self.device.name} can run {threads} of it",
                why=f"each thread needs {registers} registers",
                help="use smaller tiles, or more threads for each tile",
            )

    def _attribute(self, kernel: ctypes.c_void_p, what: int) -> int:
        value = ctypes.c_int()
        device = self.driver.device(self.device.index)
        self.driver("cuKernelGetAttribute", ctypes.byref(value), what, kernel, device)
        return value.value

    def synchronize(self) -> None:
        """Wait for everything on the device."""
        with self.driver.current(self.device.index):
            self.driver("cuCtxSynchronize")

    def current_stream(self) -> int:
        """The stream that the caller's library works on; 0, the null stream, if there is none."""
        for module, stream in STREAMS.items():
            found = sys.modules.get(module)
            if found is not None:
                return stream(found, self.device.index)
        return 0


def _torch_stream(torch: Any, index: int) -> int:
    # torch.cuda.current_stream makes an object, which takes 50 times as long
    return torch._C._cuda_getCurrentRawStream(index) if torch.cuda.is_initialized() else 0


STREAMS: dict[str, Callable[[Any, int], int]] = {
    "torch": _torch_stream,
    "cupy": lambda cupy, index: cupy.cuda.get_current_stream(index).ptr,
}


class CudaKernel:
    """A loaded kernel. Threads may share it.

    ``call(arguments, stream)``, where the native launcher is there, checks and launches without Python looking at an argument;
    it gives False if anything is out of the ordinary. ``shapes(inputs, outputs)``: those of outputs to be allocated, or None.
    """

    def __init__(self, launcher: CudaLauncher, plan: Outline, functions: Sequence[int]) -> None:
        self.launcher = launcher
        self.outline = plan
        self.functions = tuple(functions)
        self.raw = {n: p.dtype for n, p in enumerate(plan.params) if p.kind == RAW}
        own = (launcher.driver, launcher.device.index, functions, plan)
        extension = launcher.extension
        made = native.plan(extension, *own, launcher.device_type) if extension else None
        self.plan = made or PortablePlan(*own)
        self.call: Callable[[tuple[Any, ...], int | None], bool] | None = made.call if made else None
        self.shapes: Callable[[tuple[Any, ...], tuple[int, ...]], Any] | None = made.shapes if made else None

    def __call__(
        self, arguments: Sequence[int | float], grids: Sequence[tuple[int, ...]], stream: int | None = None
    ) -> None:
        """Launch with checked values.

        Raises:
            ArgumentError: the grid is larger than the device runs.
            BackendError: the driver refused; the message says why.
        """
        for entry, grid in zip(self.outline.entries, grids, strict=True):
            if any(g > most for g, most in zip(grid, GRID)):
                raise ArgumentError(
                    f"{entry.name} has a grid of {' x '.join(map(str, grid))} blocks",
                    why=f"CUDA runs at most {' x '.join(map(str, GRID))}",
                    help="use larger tiles, or put the largest extent first",
                )
        values = list(arguments)
        for n, name in self.raw.items():
            values[n] = bits(name, values[n])
        self.plan.launch(values, grids, self.launcher.current_stream() if stream is None else stream)


def bits(name: str, number: int | float) -> int:
    """A number as the bits of a narrow type."""
    import numpy as np

    return int.from_bytes(np.array(number).astype(dtype(name).as_numpy()).tobytes(), "little")
