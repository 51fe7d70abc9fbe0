"""The gradients of attention as they are measured: what the compiler makes of their loop for Hopper."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from attention_backward import backward

from tile_core.hardware import Target
from tile_core.inference.schedule.body import Facts, Reader
from tile_core.inference.schedule.modulo import timing
from tile_core.inference.schedule.pressure import excess, pressure
from tile_core.inference.schedule.region import LoopRegion
from tile_core.inference.schedule.relays import relayed

LOOP = "for0"


@cache
def made(causal: bool) -> Any:
    how = {"causal": causal, "dtype": "bfloat16", "block_N": 128, "threads": 256}
    return backward.compile(2, 16, 8192, 8192, 128, target="cuda:sm_90a", **how)


def main_text(causal: bool) -> str:
    """The launch that walks over the queries."""
    return made(causal).source.split('extern "C"')[2]


@pytest.mark.parametrize("causal", [False, True])
def test_schedule(causal: bool) -> None:
    """Tiles fit into registers, and statements come in the order in which they are written."""
    kernel = made(causal)
    found = kernel.plan.schedules[LOOP]
    (own,) = (s for s in found.body.streams if s.name == "main")
    assert 0 < pressure(found.body, found.times, "main") <= own.budget
    written = list(LoopRegion(kernel.plan.graph, kernel.plan.graph.loop(LOOP)).ops)
    steps = [s.op for s in found.streams["main"] if s.op in written]
    assert steps == [op for op in written if op in steps]


def test_inferred_schedule_keeps_within_the_registers() -> None:
    """Without the order in the program: tiles fit, and an iteration takes little more than its products, or what they read."""
    graph, plan = made(False).plan.graph, made(False).plan
    reader = Reader(LoopRegion(graph, graph.loop(LOOP)), facts(plan), 2)
    full, deps = relayed(reader.body(200 * 1024), reader.deps())
    found = timing(full, deps)
    assert found is not None
    assert excess(full, found) == 0
    assert found.interval <= 1.15 * found.bound


def facts(plan: Any) -> Facts:
    threads = 256
    return Facts(plan.info, plan.atoms, plan.layouts, plan.engines, threads, plan.bulk, adds=plan.adds)


@pytest.mark.parametrize("causal", [False, True])
def test_code(causal: bool) -> None:
    """Nothing is spilled, and the compiler serialises no product."""
    kernel = made(causal)
    resources = kernel.artifact.resources
    assert all(n == 0 for name, n in resources.items() if "spill" in name)
    assert kernel.artifact.findings == ()
    text = main_text(causal)
    assert "setmaxnreg_inc<240>" in text
    assert "reduce_add_f32" not in text
    assert "stmatrix_x4(shared_address(&dS_shared[" in text
    for tile in ("Q_shared", "dO_shared", "shift", "delta"):
        assert f"tma_load_{3 if tile in ('shift', 'delta') else 4}d(shared_address(&{tile}[" in text


def test_staging_tiles_are_awaited() -> None:
    """At a barrier of the loop all threads learn that the engine has read what they staged before; it must have been asked."""
    rows, keys, how = (1, 1, 256, 64), (1, 1, 128, 64), {"block_N": 128, "threads": 256}
    kernel = backward(1, 1, 256, 128, 64, **how).for_target(Target.parse("cuda:sm_90a"))
    wait = "bulk_wait_read<0>();"
    head, body = kernel.source.text.split('extern "C"', 1)
    assert body.index(wait) < body.index("tma_store_4d(")  # the first is the loop's, others are of results
    source = replace(kernel.source, text=head + 'extern "C"' + body.replace(wait, "", 1))
    emulator = kernel.backend.emulator(kernel.info)
    found: dict[str, bool] = {}
    for name, s in (("whole", kernel.source), ("lost", source)):
        q, k, v, out, grad = (np.ones(x, np.float16) for x in (rows, keys, keys, rows, rows))
        given = [q, k, v, out, grad, np.zeros(rows[:3], np.float32)]
        results = [np.zeros_like(x) for x in (q, k, v)]
        reports = emulator.run(s, [*given, *results], {}, mode="late")
        found[name] = all(r.clean for r in reports)
    assert found == {"whole": True, "lost": False}
