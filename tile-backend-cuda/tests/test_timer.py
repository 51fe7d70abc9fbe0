"""The timer by events, on the fake driver."""

from __future__ import annotations

import pytest
from fake_driver import Fake

from tile_backend_cuda.timer import CudaTimer
from tile_core.errors import BackendError


@pytest.mark.parametrize("flush", [True, False])
def test_times(fake: Fake, flush: bool) -> None:
    runs: list[None] = []
    timer = CudaTimer(fake.launcher("portable"), flush=flush)
    samples = timer.time(lambda: runs.append(None), warmup_ms=1, repeat_ms=5)
    assert set(samples.times) == {0.25}  # what the fake says of any two events
    assert len(samples.times) == 21
    assert len(runs) == 5 + 5 + 21
    assert samples.method == ("CUDA events, L2 cache flushed" if flush else "CUDA events")
    assert (fake.seen.allocations, fake.seen.releases) == ((1, 1) if flush else (0, 0))


def test_a_run_that_fails(fake: Fake) -> None:
    def run() -> None:
        raise ValueError("the run's own")

    with pytest.raises(ValueError, match="the run's own"):
        CudaTimer(fake.launcher("portable")).time(run)
    assert fake.seen.releases == 1
    fake.fail("cuEventSynchronize", 700)
    with pytest.raises(BackendError, match="cuEventSynchronize: an earlier kernel"):
        CudaTimer(fake.launcher("portable")).time(lambda: None)
