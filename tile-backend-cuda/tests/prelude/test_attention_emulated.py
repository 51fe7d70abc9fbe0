"""Attention on Hopper under the emulator: trip counts from none on, ragged lengths, masks, in every mode, against numpy."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tile_backend_cuda.backend import CudaBackend
from tile_backend_cuda.prelude.emulate import CudaEmulator
from tile_core.hardware import Target
from tile_core.runtime.pipeline import make_plan

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))

import flash_attention

CORES = 3  # blocks have several tiles of the grid
HEADS, DIM = 2, 64
# rows of Q, rows of K and V: 64 rows a block of keys, so no block (behind a causal mask), one, two, three, ...
LENGTHS = ((64, 64), (1, 1), (17, 250), (250, 17), (130, 128), (64, 192), (100, 1000), (300, 100))
CASES = [(q, kv, causal, 64, 128) for q, kv in LENGTHS for causal in (False, True)]
CASES += [(200, 300, causal, 128, 256) for causal in (False, True)]
CASES += [
    (400, kv, causal, 192, 384) for kv in (1, 130, 300) for causal in (False, True)
]  # three groups take turns


@pytest.mark.parametrize(("seq_q", "seq_kv", "causal", "block", "threads"), CASES)
def test_attention(seq_q: int, seq_kv: int, causal: bool, block: int, threads: int, emulator: None) -> None:
    info = replace(CudaBackend().info(Target("cuda", "sm_90a")), cores=CORES)
    kernel = flash_attention.attention(
        1, HEADS, seq_q, seq_kv, DIM, causal=causal, block_M=block, block_N=64, threads=threads
    )
    source = CudaBackend().codegen(info).emit(make_plan(kernel.program, info))
    rng = np.random.default_rng(seq_q * 1000 + seq_kv)
    q = rng.standard_normal((1, HEADS, seq_q, DIM)).astype(np.float16)
    k, v = rng.standard_normal((2, 1, HEADS, seq_kv, DIM)).astype(np.float16)
    wanted = flash_attention.reference(q, k, v, causal)
    for mode in ("late", "early", "random"):
        got = np.full_like(q, np.nan)
        for report in CudaEmulator().run(source, [q, k, v, got], {}, mode=mode):
            assert report.clean, str(report)
        assert np.abs(got - wanted).max() <= 5e-3 * np.abs(wanted).max()
