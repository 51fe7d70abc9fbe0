"""The timer by events, on the fake runtime."""

from __future__ import annotations

import pytest
from fake_hip import Fake

from tile_backend_rocm.timer import FLUSHED, RocmTimer
from tile_core.errors import BackendError


@pytest.mark.parametrize("flush", [FLUSHED, 0])
def test_times(fake: Fake, flush: int, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[None] = []
    samples = RocmTimer(fake.launcher(), flush=flush).time(
        lambda: runs.append(None), warmup_ms=1, repeat_ms=5
    )
    assert set(samples.times) == {0.25}  # what the fake says of any two events
    assert (len(samples.times), len(runs)) == (21, 5 + 5 + 21)
    assert samples.method == ("HIP events, caches flushed" if flush else "HIP events")
    assert fake.seen.written == flush * len(runs)
    assert fake.seen.allocations == fake.seen.releases == bool(flush)


def test_a_run_that_fails(fake: Fake) -> None:
    def run() -> None:
        raise ValueError("the run's own")

    with pytest.raises(ValueError, match="the run's own"):
        RocmTimer(fake.launcher()).time(run)
    assert fake.seen.releases == 1
    fake.fail("hipEventSynchronize", 719)
    with pytest.raises(BackendError, match="hipEventSynchronize"):
        RocmTimer(fake.launcher()).time(lambda: None)
