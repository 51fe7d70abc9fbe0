"""The ring of tiles that are filled once for each tile of the grid: its tokens are those that lowering makes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tile_core.hardware import Target
from tile_core.verification.plans import PROVED, verified
from tile_core.verification.turns import MOST_SLOTS, proved_turns, ring_of_turns

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))

from flash_attention import attention


@pytest.mark.parametrize("slots", range(1, MOST_SLOTS + 1))
def test_ring(slots: int) -> None:
    s = ring_of_turns(slots)
    waits = {
        step.op: [(s.tokens[w.token].producers, s.tokens[w.token].slots, w.distance) for w in step.waits]
        for step in s.steps()
    }
    assert waits == {"fill": [(("read",), slots, slots)], "read": [(("fill",), slots, 0)]}
    proof = proved_turns(slots)
    assert proof.found == () and proof.pairs


def test_of_attention() -> None:
    plan = attention(1, 2, 512, 512, 64).for_target(Target.parse("cuda:sm_90a")).plan
    assert len(plan.leads) == 1
    rows = [r for r in verified(plan) if r.of in plan.leads]
    assert [r.what for r in rows] == ["boxes are the tile", "filled ahead, nobody stuck"]
    assert all(r.status == PROVED for r in rows)
