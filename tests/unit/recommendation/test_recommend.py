"""Numbers of threads for kernels that leave them open."""

from __future__ import annotations

from dataclasses import replace

import handmade as h
import targets

from tile_core.recommendation import threads


def test_threads() -> None:
    program = h.gemm()
    left_open = replace(program, body=(replace(program.body[0], threads_given=False),))
    assert threads(left_open, targets.HOPPER) == 128
    assert threads(left_open, replace(targets.APPLE, max_threads=64)) == 64
    assert threads(program, targets.CPU) == 1
    assert threads(h.softmax(threads=256), targets.AMPERE) == 256
    assert threads(h.running_maximum(), targets.AMPERE) == 128
