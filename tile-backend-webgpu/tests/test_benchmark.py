"""The benchmark of products: the best blocks are at least twice as fast as one element an invocation, in the same run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tile_core.hardware import Device

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "webgpu_gemm.py"


def test_blocks_pay(adapter: Device):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--rounds", "1", "--least", "2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "512x512x512 on llvmpipe" in done.stdout
