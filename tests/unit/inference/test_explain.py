"""The text of plans, and what inference loads."""

from __future__ import annotations

import subprocess
import sys

import handmade as h
from targets import AMPERE, CPU

from tile_core.inference.explain import explain
from tile_core.inference.infer import infer

ROTATION = """\
plan rotation for cuda:sm_80
costs
  rotation: 62 clocks (matrix unit 0, shared 8, issue 6, memory 32), 1 registers
tiles
  f fragment (128,) float32 = 128 [128:1t]
loops
  copy0: 128 [128:1t]
  parallel0: 128 [128:1t]
placements
  alu, issued by the block, stage 0: copy0 parallel0
moves
  f: parallel0 disagrees with copy0: the index is not a sum of loop digits, so the element may be in any thread \
-> stage 512 bytes through shared memory
    parallel0 at rotation.py:8:5, in rotation
    copy0 at rotation.py:6:5, in rotation
"""

GEMM = """\
plan gemm for cuda:sm_80
costs
  gemm: 18432 clocks (matrix unit 16384, shared 12288, issue 2880, memory 18432), 128 registers
gemms
  gemm0: mma.m16n8k16.f32.f16 n8, 2x2 groups of 32
tiles
  acc fragment (128, 128) float32 = 128x128 [2:32t 4:32r 2:2r 8:4t 2:64t 8:4r 4:1t 2:1r]
  As shared (128, 32) float16 = 128x32 [4096:1m] swizzled(8 bits)
  Bs shared (32, 128) float16 = 32x128 [32:64m 2:2048m 64:1m] swizzled(9 bits)
loops
  fill0: 128x128 [2:32t 8:16r 8:4t 2:64t 8:2r 4:1t 2:1r]
  copy0: 128x32 [4:8r 128:1t 8:1r]
  copy1: 32x128 [4:8r 128:1t 8:1r]
  copy2: 128x128 [2:32t 8:16r 8:4t 2:64t 8:2r 4:1t 2:1r]
placements
  alu, issued by the block, stage 0: fill0 copy0 copy1 copy2
  tensor, issued by the block, stage 0: gemm0
notes
  As, Bs: read and written without bank conflicts
"""


def test_text() -> None:
    assert explain(infer(h.rotation(), AMPERE)) == ROTATION
    assert explain(infer(h.gemm(), AMPERE)) == GEMM


def test_text_without_threads() -> None:
    assert explain(infer(h.softmax(), CPU)).splitlines() == [
        "plan softmax for cpu",
        "placements",
        "  core, issued by the block, stage 0: copy0 reduce0 parallel0 reduce1 parallel1 copy1",
    ]


def test_places_can_be_left_out() -> None:
    assert ".py" not in explain(infer(h.rotation(), AMPERE), places=False)


def test_nothing_heavy_is_loaded() -> None:
    code = (
        "import sys; sys.path[:0] = " + repr(sys.path) + "\n"
        "import handmade as h, targets\n"
        "from tile_core.inference.explain import explain\n"
        "from tile_core.inference.infer import infer\n"
        "explain(infer(h.attention(), targets.HOPPER))\n"
        "print(sorted({'numpy', 'tvm', 'torch', 'z3'} & sys.modules.keys()))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
