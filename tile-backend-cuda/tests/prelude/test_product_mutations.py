"""Generated loops whose copies run ahead: without one of its waits, barriers or groups, a loop must not pass."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from mutations import mutants, weakened
from products import Product, compiled, faults

from tile_backend_cuda.prelude.table import MARK
from tile_core.backend import Source

pytest.importorskip("tile_backend_cuda.codegen")

PRODUCTS = {
    stages: Product(64, 32, 160, (32, 32, 16), b_t=False, threads=64, stages=stages, arch="sm_80")
    for stages in (2, 3, 4)
}


def barriers_left_out(text: str) -> list[tuple[str, str]]:
    parts = text.split("__syncthreads();")
    return [
        (
            f"barrier {n}",
            "__syncthreads();".join(parts[: n + 1]) + ";" + "__syncthreads();".join(parts[n + 1 :]),
        )
        for n in range(len(parts) - 1)
    ]


def waits_too_late(text: str) -> list[tuple[str, str]]:
    """Each thread waits for its own copies only after it met the others."""
    swapped = re.sub(r"(cp_async_wait<\d+>\(\);)(\s+)(__syncthreads\(\);)", r"\3\2\1", text)
    return [("wait after the barrier", swapped)] if swapped != text else []


def broken(stages: int) -> list:
    _, source = compiled(PRODUCTS[stages])
    prelude, _, kernel = source.text.partition(MARK)
    listed = [*mutants(kernel), *weakened(kernel), *barriers_left_out(kernel), *waits_too_late(kernel)]
    if stages == 2:  # it waits for all groups, so that it does not matter if two of them are one
        listed = [(what, text) for what, text in listed if "commit" not in what]
    return [
        pytest.param(stages, replace(source, text=prelude + MARK + text), id=f"{stages} stages: {what}")
        for what, text in listed
    ]


@pytest.mark.parametrize(("stages", "source"), [case for stages in PRODUCTS for case in broken(stages)])
def test_caught(stages: int, source: Source, emulator: None) -> None:
    assert any(faults(PRODUCTS[stages], source, mode) for mode in ("late", "early", "random"))


def test_the_loops_themselves(emulator: None) -> None:
    for p in PRODUCTS.values():
        _, source = compiled(p)
        assert not any(faults(p, source, mode) for mode in ("late", "early", "random"))


def test_there_are_enough() -> None:
    # four commits, the wait left out, weakened and too late, the barrier
    assert [len(broken(stages)) for stages in PRODUCTS] == [4, 8, 8]
