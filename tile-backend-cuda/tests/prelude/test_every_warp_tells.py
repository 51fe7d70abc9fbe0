"""Tiles that threads read while a product is at work: its end tells of them only when every warp has got there."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))

import mamba_chunk_scan
from mamba_chunk_state import steps

from tile_backend_cuda.backend import CudaBackend
from tile_backend_cuda.prelude.emulate import CudaEmulator
from tile_core.hardware import Target
from tile_core.inference.schedule import crowds, program_order
from tile_core.runtime.pipeline import make_plan
from tile_core.testing.machine.launch import MODES

HEADS, CHUNK = 2, 512  # eight tiles of a chunk, two slots


def reports(dim: int, state: int, fused: bool, mode: str) -> tuple[bool, float]:
    """(whether nothing was found, the largest error)."""
    info = CudaBackend().info(Target("cuda", "sm_90a"))
    rng = np.random.default_rng(0)
    dt, decay = steps(rng, 1, CHUNK, HEADS, CHUNK)
    b, c = (rng.standard_normal((1, CHUNK, 1, state)).astype(np.float16) for _ in range(2))
    x = rng.standard_normal((1, CHUNK, HEADS, dim)).astype(np.float16)
    states = rng.standard_normal((1, 1, HEADS, dim, state)).astype(np.float16)
    first = b if fused else mamba_chunk_scan.scores(c, b, CHUNK).astype(np.float16)
    given = [first, x, dt, decay, c, states, rng.standard_normal(HEADS).astype(np.float32)]
    want = mamba_chunk_scan.reference(*given)
    kernel = mamba_chunk_scan.chunk_scan(1, CHUNK, HEADS, 1, CHUNK, dim, state, fused=fused)
    source = CudaBackend().codegen(info).emit(make_plan(kernel.program, info))
    got = np.full(want.shape, np.nan, np.float16)
    found = list(CudaEmulator().run(source, [*given, got], {}, mode=mode))
    return all(r.clean for r in found), float(np.abs(got - want).max() / np.abs(want).max())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize(("dim", "state"), [(64, 128), (32, 128), (64, 64), (16, 64)])
def test_many_tiles(dim: int, state: int, fused: bool, mode: str) -> None:
    clean, error = reports(dim, state, fused, mode)
    assert clean and error < 2e-3


@pytest.mark.parametrize("mode", MODES)
def test_one_of_each_group_is_not_enough(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setattr(crowds, "crowds", lambda _schedule: frozenset())
    monkeypatch.setattr(program_order, "checked", lambda schedule: schedule)
    monkeypatch.setattr(program_order, "faults", lambda _schedule: [])
    clean, _ = reports(32, 128, True, mode)
    assert not clean
