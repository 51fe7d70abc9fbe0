"""Every case of the helpers and both products under the emulator, against numpy, as late, early and random as allowed."""

from __future__ import annotations

from itertools import chain

import gemm_cases
import matrix_cases
import memory_cases
import move_cases
import pytest
import scalar_cases
import tensor_cases
import warp_cases
import warpgroup_cases
from case import Case

MODULES = (
    scalar_cases,
    memory_cases,
    move_cases,
    warp_cases,
    matrix_cases,
    tensor_cases,
    warpgroup_cases,
    gemm_cases,
)
CASES = list(chain.from_iterable(m.cases() for m in MODULES))


@pytest.mark.parametrize("case", CASES, ids=[c.name for c in CASES])
def test_case(case: Case, emulator: None):
    for mode in case.modes:
        report, results = case.emulated(mode)
        assert report.clean, f"{mode}: {report}"
        assert not case.wrong(results), f"{mode}: {case.wrong(results)}"


@pytest.mark.parametrize("seed", range(3))
def test_seeds(seed: int, emulator: None):
    for case in (gemm_cases.hopper(130, 72, 200, 1), gemm_cases.ampere(65, 33, 40)):
        report, results = case.emulated("random", seed)
        assert report.clean and not case.wrong(results), str(report)


@pytest.mark.parametrize(
    ("name", "was", "now", "told"),
    [
        ("tma_load_1d", "bar, 144)", "bar, 146)", "292 bytes from its start: no multiple of 16"),
        ("tma_store_2d", "s, 16, 0)", "s, 16, -3)", "negative coordinate -3"),
        ("tma_store_2d", "s, 16, 0)", "s, 17, 0)", "34 bytes from its start"),
    ],
)
def test_places_that_the_hardware_refuses(name: str, was: str, now: str, told: str, emulator: None):
    (case,) = [c for c in CASES if c.name == name]
    assert was in case.text
    report, _ = case.emulated(text=case.text.replace(was, now))
    assert "bad-operand" in report.codes and told in str(report)


def test_all_families_have_cases():
    from tile_backend_cuda.prelude import find, names

    text = "\n".join(c.text for c in CASES)
    families = {h.family for n in names() if (h := find(n)) and h.name in text}
    everything = {h.family for n in names() if (h := find(n))}
    assert everything - families == {"launch", "tcgen05"}
