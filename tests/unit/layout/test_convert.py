from __future__ import annotations

import numpy as np
import pytest
from brute import held, points
from hypothesis import given
from hypothesis import strategies as st

import tile_backend_cuda.atoms as atoms
from tile_core.layout import algebra as alg
from tile_core.layout.convert import Kind, Shuffles, convert, exchange, gather_rounds
from tile_core.layout.layout import Axis, Iter, Layout

T, R = Axis.THREAD, Axis.REGISTER


@st.composite
def bit_layouts(draw: st.DrawFn, lanes: int = 3, registers: int = 3) -> Layout:
    """A (2^a, 2^b) tile over 8 lanes: any assignment of bits."""
    places = draw(
        st.permutations([(T, 1 << k) for k in range(lanes)] + [(R, 1 << k) for k in range(registers)])
    )
    return Layout((1 << lanes, 1 << registers), tuple(Iter(2, s, a) for a, s in places))


def run(plan: Shuffles, have: Layout, need: Layout) -> None:
    """Carry out the rounds, lane by lane, checking what the hardware demands of each."""
    lanes, registers = 1 << plan.lanes, 1 << plan.registers
    seen = set()
    for k in range(len(plan.reps)):
        sources, targets = set(), set()
        for a, b in plan.states(k):
            sources.add(a >> plan.registers)
            targets.add(b >> plan.registers)
            seen.add(a)
        assert len(sources) == len(targets) == lanes  # every lane sends one register and receives one
    assert len(seen) == lanes * registers


@given(bit_layouts(), bit_layouts())
def test_exchange_moves_every_element(have: Layout, need: Layout) -> None:
    found = exchange(have, need, 8)
    assert found is not None
    plan, repeat = found
    run(plan, have, need)
    assert plan.rounds * repeat >= least_rounds(have, need)
    moved = alg.inverse(have, ((T, 8), (R, 8)))
    assert moved is not None
    if repeat == 1:  # all register bits take part: follow the data
        data, out = np.zeros((8, 8), int), np.full((8, 8), -1)
        for at, (spot,) in points(have).items():
            data[spot[T], spot[R]] = at[0] * 8 + at[1]
        r = plan.registers
        for k in range(len(plan.reps)):
            for a, b in plan.states(k):
                out[b >> r, b & (1 << r) - 1] = data[a >> r, a & (1 << r) - 1]
        for at, (spot,) in points(need).items():
            assert out[spot[T], spot[R]] == at[0] * 8 + at[1]


def least_rounds(have: Layout, need: Layout) -> int:
    a, b = held(have), held(need)
    return max(len(a[t] - b[t]) for t in a)


@given(bit_layouts(), bit_layouts())
def test_kinds_are_right(have: Layout, need: Layout) -> None:
    found = convert(have, need, 32, 8)
    a, b = held(have), held(need)
    inside = all(b[t] <= a[t] for t in b)
    assert found.free == inside
    if found.kind is Kind.NOTHING:
        assert points(have) == points(need)
    if not found.free:
        assert gather_rounds(have, need, 8) >= least_rounds(have, need)


def wide(atom: Layout, times: int) -> Layout:
    out = alg.product(Layout((1, times), (Iter(times, 1, R),)), atom)
    assert out is not None
    return out


@pytest.mark.parametrize("n", [64, 128, 176, 256])
def test_p_of_attention_is_free(n: int) -> None:
    assert convert(atoms.wgmma_c(n), wide(atoms.wgmma_a(16), n // 16), 16).kind is Kind.NOTHING


def test_fp8_p_needs_shuffles_within_four_lanes() -> None:
    c, a = atoms.wgmma_c(128), wide(atoms.wgmma_a(8), 4)
    found = convert(c, a, 8)
    assert found.kind is Kind.SHUFFLE and found.shuffles == 16  # one per 32-bit register of 64 bytes
    assert not alg.contains(c, a)


def test_tf32_p_needs_shuffles() -> None:
    assert convert(atoms.wgmma_c(64), wide(atoms.wgmma_a(32), 8), 32).kind is Kind.SHUFFLE


def test_across_warps_goes_through_shared() -> None:
    rows = Layout((64, 64), (Iter(4, 32, T), Iter(16, 1, R), Iter(32, 1, T), Iter(2, 16, R)))
    columns = Layout((64, 64), (Iter(64, 1, R), Iter(4, 32, T), Iter(16, 1, T)), (Iter(2, 16, T),))
    found = convert(rows, columns, 16)
    assert found.kind is Kind.SHARED and found.shared_bytes == 8192 and "dimension 0" in found.reason


def test_partial_warps_never_shuffle_wrongly() -> None:
    a = Layout((48, 4), (Iter(48, 1, T), Iter(4, 1, R)))
    b = Layout((48, 4), (Iter(12, 4, T), Iter(4, 1, R), Iter(4, 1, T)))
    assert convert(a, b, 32).kind is Kind.SHARED


@pytest.mark.parametrize("copies", [False, True])
def test_gather_counts_rounds_of_replicated_values(copies: bool) -> None:
    have = Layout((32,), (Iter(32, 1, T),))
    need = Layout((32,), (Iter(4, 8, T), Iter(8, 1, R)), (Iter(8, 1, T),) if copies else ())
    assert gather_rounds(have, need, 32) == 8 - (not copies)  # without copies register 0 is at home already
