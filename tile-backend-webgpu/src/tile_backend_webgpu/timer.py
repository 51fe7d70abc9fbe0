"""Times kernels by timestamps of the device: only what runs there counts, not the copies of arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_core.backend import Samples

from .launcher.session import Session


class PassTimer:
    """Takes the times of all passes that one run submits. Needs the feature ``timestamp-query``."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def time(self, run: Callable[[], Any], *, warmup_ms: float = 25, repeat_ms: float = 100) -> Samples:
        with self.session.clocked() as passes:

            def once() -> float:
                passes.clear()
                run()
                return sum(passes) * 1e-6

            spent = once()
            while 0 < spent < warmup_ms:
                spent += once()
            times = [once()]
            while (sum(times) < repeat_ms and len(times) < 1000) or len(times) < 3:
                times.append(once())
        return Samples(tuple(sorted(times)), "timestamps of the device")
