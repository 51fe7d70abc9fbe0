"""Times of the GPU itself: of Metal's command buffers for arrays of the host, by events of torch for its tensors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tile_core.backend import HostTimer, Samples

from .launcher import MetalLauncher
from .launcher.objective import SECONDS

ESTIMATE = 5  # runs that tell how many are measured
LEAST, MOST = 3, 2000


class MetalTimer:
    """Measures on the device of a launcher, by the clock that fits what is run."""

    def __init__(self, launcher: MetalLauncher) -> None:
        self.launcher = launcher

    def time(self, run: Callable[[], Any], *, warmup_ms: float = 25, repeat_ms: float = 100) -> Samples:
        """Times in milliseconds of single runs, copies of the host's arrays not among them.

        A run that launches neither on torch's tensors nor on arrays of the host is timed by the host's clock.
        """
        if by_buffers(run):
            return _measured(by_buffers, run, warmup_ms, repeat_ms, "command buffers of Metal")
        torch = sys.modules.get("torch")
        if torch is not None and torch.backends.mps.is_available():
            return _measured(_ByEvents(torch), run, warmup_ms, repeat_ms, "MPS events of torch")
        return HostTimer(self.launcher.synchronize).time(run, warmup_ms=warmup_ms, repeat_ms=repeat_ms)


def by_buffers(run: Callable[[], Any]) -> float:
    """Milliseconds that the GPU spends in the command buffers of one run; 0 if it has none."""
    spent: list[float] = []
    token = SECONDS.set(spent)
    try:
        run()
    finally:
        SECONDS.reset(token)
    return sum(spent) * 1e3


class _ByEvents:
    """``torch.mps.event.Event``: both are recorded on the queue on which kernels run."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch

    def __call__(self, run: Callable[[], Any]) -> float:
        event = self.torch.mps.event.Event
        begin, end = event(enable_timing=True), event(enable_timing=True)
        begin.record()
        run()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)


def _measured(
    clock: Callable[[Callable[[], Any]], float],
    run: Callable[[], Any],
    warmup_ms: float,
    repeat_ms: float,
    method: str,
) -> Samples:
    per_run = max(sum(clock(run) for _ in range(ESTIMATE)) / ESTIMATE, 1e-4)
    for _ in range(_count(warmup_ms, per_run)):
        clock(run)
    times = [clock(run) for _ in range(max(LEAST, _count(repeat_ms, per_run)))]
    return Samples(tuple(sorted(times)), method)


def _count(milliseconds: float, per_run: float) -> int:
    return min(MOST, int(milliseconds / per_run) + 1)
