"""Ops that are not needed for long stand where the stream waits anyway, and waits behind what need not wait."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import bodies as b
import pytest
from making import schedule

from tile_core.hardware import Target
from tile_core.inference.schedule.check import faults
from tile_core.inference.schedule.dependences import dependences
from tile_core.inference.schedule.links import Links
from tile_core.inference.schedule.model import GROUP, Body
from tile_core.inference.schedule.modulo import timing
from tile_core.inference.schedule.patience import patient
from tile_core.inference.schedule.relays import relayed

sys.path.insert(0, str(Path(__file__).parents[4] / "examples"))

from flash_attention import attention

BODIES = (b.attention_hopper, b.attention_together, b.chunk_scan_hopper, b.dequant_hopper, b.gemm_hopper)


@pytest.mark.parametrize("make", BODIES, ids=lambda f: f.__name__)
def test_the_interval_stays(make: Callable[[], Body]) -> None:
    body = make()
    full, every = relayed(body, dependences(body))
    times = timing(full, every)
    assert times is not None
    depth = {s.name: times.depth.get(s.name, 1) for s in full.storage}
    again = patient(Links(full, every, depth), times)
    assert again.interval == times.interval
    s = schedule(body)
    assert s is not None
    assert faults(s) == []


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("dim", "rows", "columns"), [(128, 128, 128), (128, 128, 176), (64, 192, 112)])
def test_softmax_runs_under_the_older_product(causal: bool, dim: int, rows: int, columns: int) -> None:
    keywords = {"causal": causal, "block_M": rows, "block_N": columns, "threads": 2 * rows}
    plan = attention(1, 4, 4096, 4096, dim, **keywords).for_target(Target.parse("cuda:sm_90a")).plan
    ((_, s),) = plan.schedules.items()
    (order,) = ([x.op for x in steps] for name, steps in s.streams.items() if name != "copy")
    last = next(
        x.op
        for x in s.streams["main"]
        if any(s.tokens[w.token].kind == GROUP and w.distance == 0 for w in x.waits)
    )
    products = [op for op in order if s.ops[op].asynchronous]
    exponentials = "reduce1"  # sums what they are
    assert order.index(products[-1]) < order.index(exponentials) < order.index(last)
    assert s.stages("main") == 2
