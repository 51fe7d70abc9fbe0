from __future__ import annotations

from hypothesis import given
from test_convert import bit_layouts

from tile_core.layout.convert import exchange
from tile_core.layout.f2 import combine
from tile_core.layout.layout import Layout
from tile_core.layout.rounds import applied, rounds


@given(bit_layouts(), bit_layouts())
def test_steps_carry_out_the_plan(have: Layout, need: Layout) -> None:
    found = exchange(have, need, 8)
    assert found is not None
    plan, _ = found
    steps = rounds(plan)
    got = applied(steps, lambda lane, n: lane << plan.registers | n)
    for state in range(1 << (plan.registers + 3)):
        to = combine(plan.transfer, state)
        assert got[to >> plan.registers, to & (1 << plan.registers) - 1] == state
    assert len(steps.before) <= plan.registers and len(steps.after) <= plan.registers
