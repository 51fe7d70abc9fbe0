"""Times by HIP events on the caller's stream, with the last cache written over before each run."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from tile_core.backend import Samples

from .launcher import RocmLauncher
from .launcher.runtime import Runtime

FLUSHED = 512 * 1024**2  # twice the 256 MiB of an MI300X's last cache
ESTIMATE = 5  # runs that tell how many are measured
MOST = 2000  # pairs of events


class RocmTimer:
    """Measures on the device of a launcher. ``flush``: bytes that are written before each run; 0: the caches stay warm."""

    def __init__(self, launcher: RocmLauncher, *, flush: int = FLUSHED) -> None:
        self.launcher = launcher
        self.flush = flush

    def time(self, run: Callable[[], Any], *, warmup_ms: float = 25, repeat_ms: float = 100) -> Samples:
        """Times in milliseconds of single runs, the flush not among them. Raises ``BackendError`` if a run fails."""
        hip = self.launcher.hip
        with ExitStack() as stack:
            stack.enter_context(hip.current(self.launcher.device.index))
            buffer = stack.enter_context(_Buffer(hip, self.flush)) if self.flush else None
            measure = _Measure(hip, self.launcher.current_stream(), buffer, run)
            per_run = max(sum(measure.times(ESTIMATE)) / ESTIMATE, 1e-4)
            measure.times(_count(warmup_ms, per_run))
            times = measure.times(max(3, _count(repeat_ms, per_run)))
        return Samples(tuple(sorted(times)), "HIP events" + (", caches flushed" if buffer else ""))


def _count(milliseconds: float, per_run: float) -> int:
    return min(MOST, int(milliseconds / per_run) + 1)


class _Buffer:
    """Memory of the device for the length of a ``with`` block."""

    def __init__(self, hip: Runtime, size: int) -> None:
        self.hip = hip
        self.size = size
        self.address = ctypes.c_void_p()

    def __enter__(self) -> _Buffer:
        self.hip("hipMalloc", ctypes.byref(self.address), ctypes.c_size_t(self.size))
        return self

    def __exit__(self, *_: object) -> None:
        self.hip("hipFree", self.address)

    def write(self, stream: int) -> None:
        self.hip("hipMemsetAsync", self.address, 0, ctypes.c_size_t(self.size), ctypes.c_void_p(stream))


class _Measure:
    """Runs with events around each; all are issued before the first is waited for."""

    def __init__(self, hip: Runtime, stream: int, buffer: _Buffer | None, run: Callable[[], Any]) -> None:
        self.hip = hip
        self.stream = ctypes.c_void_p(stream)
        self.buffer = buffer
        self.run = run

    def times(self, count: int) -> list[float]:
        events = [(self._event(), self._event()) for _ in range(count)]
        try:
            for begin, end in events:
                if self.buffer:
                    self.buffer.write(self.stream.value or 0)
                self.hip("hipEventRecord", begin, self.stream)
                self.run()
                self.hip("hipEventRecord", end, self.stream)
            self.hip("hipEventSynchronize", events[-1][1])
            return [self._elapsed(begin, end) for begin, end in events]
        finally:
            for pair in events:
                for event in pair:
                    self.hip("hipEventDestroy", event)

    def _event(self) -> ctypes.c_void_p:
        event = ctypes.c_void_p()
        self.hip("hipEventCreate", ctypes.byref(event))
        return event

    def _elapsed(self, begin: ctypes.c_void_p, end: ctypes.c_void_p) -> float:
        milliseconds = ctypes.c_float()
        self.hip("hipEventElapsedTime", ctypes.byref(milliseconds), begin, end)
        return milliseconds.value
