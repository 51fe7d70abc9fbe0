"""Schedules are proved by z3, and every way to break one in one place is seen."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "inference" / "schedule"))

import bodies as b
from making import schedule
from mutants import mutants

from tile_core.inference.schedule.model import Body
from tile_core.verification.schedules import phase_lemma, prove_schedule

PROVED = (
    b.gemm_hopper, b.gemm_together, b.attention_hopper, b.chunk_scan_hopper, b.gemm_ampere, b.gemm_cdna3, b.gemm_plain,
    b.attention_blackwell, b.persistent_hopper,
)  # fmt: skip
BROKEN = (b.gemm_hopper, b.gemm_ampere, b.gemm_plain, b.dequant_hopper)


@pytest.mark.parametrize("make", PROVED, ids=lambda f: f.__name__)
def test_proved(make: Callable[[], Body]) -> None:
    s = schedule(make())
    assert s is not None
    proof = prove_schedule(s)
    assert proof.failures == ()
    assert proof.cases > len(s.ops)


@pytest.mark.parametrize("make", BROKEN, ids=lambda f: f.__name__)
def test_all_are_caught(make: Callable[[], Body]) -> None:
    s = schedule(make())
    assert s is not None
    missed = [name for name, broken in mutants(s) if not prove_schedule(broken, most=1).failures]
    assert missed == []


def test_there_are_enough() -> None:
    found = [schedule(make()) for make in BROKEN]
    assert sum(len(list(mutants(s))) for s in found if s is not None) >= 40


def test_without_resources_nothing_is_proved() -> None:
    s = schedule(b.attention_hopper())
    assert s is not None
    (failure, *_) = prove_schedule(s, rlimit=1, most=1).failures
    assert failure.endswith("not proved")


@pytest.mark.parametrize("slots", [1, 2, 3, 8])
def test_phase_bits(slots: int) -> None:
    assert phase_lemma(slots)
