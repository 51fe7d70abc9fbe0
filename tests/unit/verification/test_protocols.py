"""Schedules are proved by their short runs, every way to break one is seen, and the solver and the graph check say the same."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "inference" / "schedule"))
sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))

import bodies as b
import mamba_chunk_scan
import mla_decode
import randomly
from making import schedule
from mutants import mutants

from tile_core.hardware import Target
from tile_core.inference.schedule.check import faults
from tile_core.inference.schedule.model import RELAY, Body
from tile_core.inference.schedule.program import Schedule
from tile_core.verification.protocols import prove_protocol
from tile_core.verification.schedules import prove_schedule

BODIES = (
    b.gemm_hopper, b.gemm_together, b.attention_hopper, b.attention_together, b.chunk_scan_hopper, b.dequant_hopper,
    b.gemm_ampere, b.gemm_cdna3, b.gemm_plain, b.attention_blackwell, b.persistent_hopper,
)  # fmt: skip
HOPPER = Target.parse("cuda:sm_90a")


def decode() -> Schedule:
    """The two teams of MLA's decoding, whose tokens are told once."""
    (s,) = mla_decode.decode(**mla_decode.EXAMPLE["decode"]).for_target(HOPPER).plan.schedules.values()
    return s


def chunk_scan() -> Schedule:
    """A loop whose threads read tiles while a product is at work, in two groups."""
    kernel = mamba_chunk_scan.chunk_scan(1, 512, 2, 1, 512, 32, 128, fused=True).for_target(HOPPER)
    (s,) = kernel.plan.schedules.values()
    return s


@pytest.mark.parametrize("make", BODIES, ids=lambda f: f.__name__)
def test_all_are_caught(make: Callable[[], Body]) -> None:
    s = schedule(make())
    assert s is not None
    proof = prove_protocol(s)
    assert proof.found == () and proof.pairs >= len(s.deps)
    for name, broken in mutants(s):
        if name.startswith("shrink token") and not prove_schedule(broken).failures:
            continue  # the graph check asks for a slot more than can be seen to be used
        assert prove_protocol(broken, most=1).found, name


@pytest.mark.parametrize("make", [decode, chunk_scan])
def test_of_teams_and_groups_all_are_caught(make: Callable[[], Schedule]) -> None:
    s = make()
    assert s.uneven and prove_protocol(s).found == ()
    found = list(mutants(s))
    assert len(found) > 20
    missed = [name for name, broken in found if not prove_protocol(broken, most=1).found]
    assert [name for name in missed if not name.startswith("shrink token")] == []


@pytest.mark.parametrize("seed", range(25))
def test_random_ones_are_proved(seed: int) -> None:
    s = schedule(randomly.body(seed))
    if s is not None:
        assert prove_protocol(s).found == ()


@pytest.mark.parametrize(
    "check", [faults, lambda s: prove_protocol(s).found, lambda s: prove_schedule(s).failures]
)
def test_a_token_that_crowds_tell_is_not_told_once(check: Callable[[Schedule], object]) -> None:
    """What threads read beside a product is not known to be read when one of them has seen the product's end."""
    s = chunk_scan()
    crowded = [
        name
        for name, t in s.tokens.items()
        if not t.once and any(s.ops[u].kind == RELAY for u in t.producers)
    ]
    assert crowded and not check(s)
    for name in crowded:
        assert check(replace(s, tokens={**s.tokens, name: replace(s.tokens[name], once=True)})), name


def test_a_group_must_end_together() -> None:
    """Where each thread's products end by themselves, nobody can tell of the others'."""
    s = decode()
    body = replace(s.body, units=tuple(replace(u, together=0) for u in s.body.units))
    assert faults(replace(s, body=body))
    assert prove_protocol(replace(s, body=body)).found


def test_the_first_run_that_breaks_it() -> None:
    s = schedule(b.gemm_hopper())
    assert s is not None
    ring = next(name for name, depth in s.depth.items() if depth > 1)
    found = prove_protocol(replace(s, depth={**s.depth, ring: s.depth[ring] - 1})).found
    assert {c.trips for c in found} == {s.depth[ring]}
    assert {c.then[1] - c.first[1] for c in found} == {s.depth[ring] - 1}


def test_equal_structures_are_proved_once() -> None:
    first, second = schedule(b.gemm_hopper()), schedule(b.gemm_hopper())
    assert first is not None and second is not None and first is not second
    assert prove_protocol(first) is prove_protocol(second)
    ring = next(name for name, depth in first.depth.items() if depth > 1)
    other = replace(first, depth={**first.depth, ring: first.depth[ring] + 1})
    assert prove_protocol(other) is not prove_protocol(first)
