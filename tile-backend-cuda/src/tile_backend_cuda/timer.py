"""Times by CUDA events on the caller's stream, with the L2 cache written over before each run."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from tile_core.backend import Samples

from .launcher import CudaLauncher
from .launcher.driver import L2_BYTES, Driver

FLUSHED = 2  # times the size of the cache
ESTIMATE = 5  # runs that tell how many are measured
MOST = 2000  # pairs of events


class CudaTimer:
    """Measures on the device of a launcher. ``flush``: whether each run finds none of its data in the L2 cache."""

    def __init__(self, launcher: CudaLauncher, *, flush: bool = True) -> None:
        self.launcher = launcher
        self.flush = flush

    def time(self, run: Callable[[], Any], *, warmup_ms: float = 25, repeat_ms: float = 100) -> Samples:
        """Times in milliseconds of single runs, the flush not among them. Raises ``BackendError`` if a run fails."""
        driver, index = self.launcher.driver, self.launcher.device.index
        with ExitStack() as stack:
            stack.enter_context(driver.current(index))
            cache = FLUSHED * driver.attribute(L2_BYTES, index) if self.flush else 0
            buffer = stack.enter_context(_Buffer(driver, cache)) if cache else None
            stream = self.launcher.current_stream()
            measure = _Measure(driver, stream, buffer, run)
            per_run = max(sum(measure.times(ESTIMATE)) / ESTIMATE, 1e-4)
            measure.times(_count(warmup_ms, per_run))
            times = measure.times(max(3, _count(repeat_ms, per_run)))
        return Samples(tuple(sorted(times)), "CUDA events" + (", L2 cache flushed" if cache else ""))


def _count(milliseconds: float, per_run: float) -> int:
    return min(MOST, int(milliseconds / per_run) + 1)


class _Buffer:
    """Memory of the device for the length of a ``with`` block."""

    def __init__(self, driver: Driver, size: int) -> None:
        self.driver = driver
        self.size = size
        self.address = ctypes.c_void_p()

    def __enter__(self) -> _Buffer:
        self.driver("cuMemAlloc_v2", ctypes.byref(self.address), ctypes.c_size_t(self.size))
        return self

    def __exit__(self, *_: object) -> None:
        self.driver("cuMemFree_v2", self.address)

    def write(self, stream: int) -> None:
        self.driver("cuMemsetD8Async", self.address, 0, ctypes.c_size_t(self.size), ctypes.c_void_p(stream))


class _Measure:
    """Runs with events around each; all are issued before the first is waited for."""

    def __init__(self, driver: Driver, stream: int, buffer: _Buffer | None, run: Callable[[], Any]) -> None:
        self.driver = driver
        self.stream = stream
        self.buffer = buffer
        self.run = run

    def times(self, count: int) -> list[float]:
        events = [(self._event(), self._event()) for _ in range(count)]
        try:
            for begin, end in events:
                if self.buffer:
                    self.buffer.write(self.stream)
                self.driver("cuEventRecord", begin, ctypes.c_void_p(self.stream))
                self.run()
                self.driver("cuEventRecord", end, ctypes.c_void_p(self.stream))
            self.driver("cuEventSynchronize", events[-1][1])
            return [self._elapsed(begin, end) for begin, end in events]
        finally:
            for pair in events:
                for event in pair:
                    self.driver("cuEventDestroy_v2", event)

    def _event(self) -> ctypes.c_void_p:
        event = ctypes.c_void_p()
        self.driver("cuEventCreate", ctypes.byref(event), 0)
        return event

    def _elapsed(self, begin: ctypes.c_void_p, end: ctypes.c_void_p) -> float:
        milliseconds = ctypes.c_float()
        self.driver("cuEventElapsedTime", ctypes.byref(milliseconds), begin, end)
        return milliseconds.value
