"""The CUDA driver through ctypes: its functions with their errors raised, and contexts of devices."""

from __future__ import annotations

import ctypes
from collections.abc import Generator
from contextlib import contextmanager
from functools import cached_property, lru_cache
from typing import Any

from tile_core.errors import BackendError

from ..probe import DRIVER
from .failures import failure

OLD = "update the NVIDIA driver: kernels are launched through functions of CUDA 12"

# CUdevice_attribute, CUfunction_attribute of cuda.h
MAX_SHARED_PER_BLOCK, L2_BYTES = 97, 38
MAX_THREADS, STATIC_SHARED, REGISTERS, DYNAMIC_SHARED, WIDE_CLUSTERS = 0, 1, 4, 8, 14

# What sources/driver.h calls, in its order.
HOT = (
    "cuLaunchKernelEx",
    "cuTensorMapEncodeTiled",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuMemAllocAsync",
    "cuMemFreeAsync",
)


class Driver:
    """One loaded driver library. Threads may share it.

    Raises:
        BackendError: it does not load, has no device, or does not know a function.
    """

    def __init__(self, path: str = DRIVER) -> None:
        try:
            self.library = ctypes.CDLL(path)
        except OSError as error:
            raise BackendError(
                f"the CUDA driver does not load: {error}",
                help="install the NVIDIA driver; kernels can be compiled and exported without it",
            ) from error
        self._contexts: dict[int, int] = {}
        self("cuInit", 0)

    def __call__(self, name: str, *arguments: Any) -> None:
        """Call a function. Raises ``BackendError`` that says what its error means."""
        error = self.function(name)(*arguments)
        if error:
            raise failure(error, name)

    def function(self, name: str) -> Any:
        """A function of the driver. Raises ``BackendError`` if it is too old to have it."""
        try:
            return getattr(self.library, name)
        except AttributeError as error:
            raise BackendError(f"the CUDA driver {self.version} has no {name}", help=OLD) from error

    @cached_property
    def addresses(self) -> tuple[int, ...]:
        """Of the functions that a launch calls."""
        found = (ctypes.cast(self.function(name), ctypes.c_void_p).value for name in HOT)
        return tuple(a or 0 for a in found)

    @property
    def version(self) -> str:
        number = ctypes.c_int()
        self.library.cuDriverGetVersion(ctypes.byref(number))
        return f"{number.value // 1000}.{number.value % 1000 // 10}"

    def context(self, index: int) -> int:
        """The primary context of a device, which torch and the CUDA runtime use too; kept for the life of the process."""
        found = self._contexts.get(index)
        if found is None:
            handle = ctypes.c_void_p()
            self("cuDevicePrimaryCtxRetain", ctypes.byref(handle), self.device(index))
            found = self._contexts[index] = handle.value or 0
        return found

    def device(self, index: int) -> int:
        handle = ctypes.c_int()
        self("cuDeviceGet", ctypes.byref(handle), index)
        return handle.value

    def attribute(self, what: int, index: int) -> int:
        value = ctypes.c_int()
        self("cuDeviceGetAttribute", ctypes.byref(value), what, self.device(index))
        return value.value

    @contextmanager
    def current(self, index: int) -> Generator[None, None, None]:
        """The context of a device is the thread's current one inside a ``with`` block."""
        before, wanted = ctypes.c_void_p(), self.context(index)
        self("cuCtxGetCurrent", ctypes.byref(before))
        if before.value == wanted:
            yield
            return
        self("cuCtxSetCurrent", ctypes.c_void_p(wanted))
        try:
            yield
        finally:
            self("cuCtxSetCurrent", before)


@lru_cache(maxsize=4)
def driver(path: str = DRIVER) -> Driver:
    """The driver of this process. Raises ``BackendError`` where there is none."""
    return Driver(path)
