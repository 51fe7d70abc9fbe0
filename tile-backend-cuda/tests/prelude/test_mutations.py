"""Tests of the emulator: a product from which one wait, fence, barrier, arrival or commit is missing must not pass."""

from __future__ import annotations

import gemm_cases
import pytest
from case import Case
from mutations import mutants, weakened

HOPPER, CLUSTER, AMPERE = (
    gemm_cases.hopper(200, 136, 264, 2),
    gemm_cases.hopper(300, 72, 520, 2, cm=2),
    gemm_cases.ampere(100, 72, 136),
)


def broken(case: Case) -> list:
    dead = "cluster_sync" if case.cluster == 1 else "cta_sync"  # the other branch of a compile-time choice
    listed = [m for m in (*mutants(case.text), *weakened(case.text)) if case is AMPERE or dead not in m[0]]
    kind = case.name.split()[0] + f" cluster {case.cluster}"
    return [pytest.param(case, text, id=f"{kind}: {what}") for what, text in listed]


@pytest.mark.parametrize(("case", "text"), [*broken(HOPPER), *broken(CLUSTER), *broken(AMPERE)])
def test_caught(case: Case, text: str, emulator: None):
    for mode in ("late", "early", "random"):
        report, results = case.emulated(mode, text=text)
        if not report.clean or case.wrong(results):
            return
    pytest.fail("the emulator found nothing")


def test_there_are_enough():
    assert len(broken(HOPPER)) > 20 and len(broken(CLUSTER)) > 20 and len(broken(AMPERE)) >= 6
