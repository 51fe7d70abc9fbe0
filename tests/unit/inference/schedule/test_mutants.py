"""Every way to break a schedule in one place is seen by the graph check, and by the simulator, which knows nothing of it."""

from __future__ import annotations

import bodies as b
import pytest
from making import schedule
from mutants import mutants
from simulator import attack

from tile_core.inference.schedule.check import faults
from tile_core.verification.schedules import prove_schedule

BODIES = [
    b.gemm_hopper, b.gemm_together, b.attention_hopper, b.attention_together, b.chunk_scan_hopper, b.dequant_hopper,
    b.gemm_ampere, b.gemm_cdna3, b.gemm_plain, b.attention_blackwell, b.persistent_hopper,
]  # fmt: skip
EFFORT = (1, 4, 40)  # seeds of the simulator, until it finds something


@pytest.mark.parametrize("make", BODIES, ids=lambda f: f.__name__)
def test_all_are_caught(make) -> None:
    s = schedule(make())
    assert s is not None
    found = list(mutants(s))
    assert found
    for name, broken in found:
        assert faults(broken), name
        if name.startswith("shrink token") and not prove_schedule(broken).failures:
            continue  # the graph check argues with distances, and asks for a slot more than can be seen to be used
        assert any(attack(broken, seeds=n) for n in EFFORT), name
