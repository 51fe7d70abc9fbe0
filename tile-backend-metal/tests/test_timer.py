"""The timer on a Mac that is not there: which clock it takes, and what it adds up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fake_metal import FakeMetal
from fake_mps import FakeMps, tensor

import tile_core as tile
import tile_core.language as T
from tile_core.errors import NoDevice


def copied() -> Any:
    """Two launches."""

    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            T.copy(A, B)
        with T.Kernel(1, threads=64):
            T.copy(A, B)

    return tile.compile(main, target="metal:apple9")


def test_command_buffers(backend: Any, metal: FakeMetal) -> None:
    a, b = np.zeros(64, np.float32), np.zeros(64, np.float32)
    samples = tile.bench(copied(), a, b, warmup_ms=1, repeat_ms=5)
    assert samples.method == "command buffers of Metal"
    assert samples.times == pytest.approx([0.5] * 11)


def test_events_of_torch(backend: Any, mps: FakeMps) -> None:
    samples = tile.bench(copied(), tensor(64), tensor(64), warmup_ms=1, repeat_ms=5)
    assert samples.method == "MPS events of torch"
    assert samples.times == (0.5,) * 11
    assert mps.events[:3] == ["record", "record", "synchronize"]


def test_neither(backend: Any, mps: FakeMps) -> None:
    mps.backends.mps.is_available = lambda: False
    runs: list[None] = []
    samples = backend.timer(backend.device(0)).time(lambda: runs.append(None), warmup_ms=0, repeat_ms=0)
    assert samples.method == "host clock"
    assert len(samples.times) == 3


def test_a_run_that_fails(backend: Any, metal: FakeMetal) -> None:
    def run() -> None:
        raise ValueError("the run's own")

    with pytest.raises(ValueError, match="the run's own"):
        backend.timer(backend.device(0)).time(run)


def test_only_on_macos() -> None:
    from tile_backend_metal.backend import MetalBackend
    from tile_core.hardware import Device, Target

    with pytest.raises(NoDevice, match="on macOS only"):
        MetalBackend().timer(Device(Target("metal", "apple9"), 0, "none"))
