"""The examples of ``linear_cases`` and ``product_cases`` at small sizes: on ``cpu``, interpreted and emulated for Hopper."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tile_core as tile
from tile_core.hardware import Target
from tile_core.testing.emulated import emulated

sys.path.insert(0, str(Path(__file__).parents[1] / "device"))

from example_cases import Example
from linear_cases import FAMILIES as LINEAR
from product_cases import FAMILIES as PRODUCTS

CASES = [e for family in (*LINEAR, *PRODUCTS) for e in family() if not e.large]
MAINS: tuple[Callable[[], None], ...] = tuple(
    importlib.import_module(name).main for name in dict.fromkeys(e.kernel.split(":")[0] for e in CASES)
)


@cache
def made(name: str, target: str) -> Any:
    """The kernel of a case for a target: its source is the same in each mode and for each of its results."""
    example = next(e for e in CASES if e.name.removesuffix(f"-part{e.part}") == name)
    module, _, function = example.kernel.rpartition(":")
    kernel = getattr(importlib.import_module(module), function)(*example.arguments, **example.keywords)
    return kernel.for_target(Target.parse(target))


def returned(example: Example, target: str, mode: str) -> np.ndarray:
    """The result; ``mode`` "": of the target itself, not of its emulator."""
    data, out = example.data(), example.result()
    if mode == "":
        with tile.target(target):
            return np.asarray(example.run(data, out))
    given = data if out is None else [*data[:2], out, *data[2:]]
    found = emulated(made(example.name.removesuffix(f"-part{example.part}"), target), given, {}, mode)
    return found[max(example.part, 0)] if out is None else out


@pytest.mark.parametrize("example", CASES, ids=lambda e: e.name)
@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_against_numpy(target: str, example: Example) -> None:
    assert example.problem(returned(example, target, ""), example.reference(*example.data())) == ""


@pytest.mark.parametrize("example", CASES, ids=lambda e: e.name)
@pytest.mark.parametrize("mode", ["early", "late", "random"])
def test_emulated_for_hopper(mode: str, example: Example) -> None:
    assert example.problem(returned(example, "cuda:sm_90a", mode), example.reference(*example.data())) == ""


@pytest.mark.parametrize("main", MAINS, ids=lambda f: f.__module__)
def test_main_runs(main: Callable[[], None], capsys: pytest.CaptureFixture[str]) -> None:
    main()
    assert "error" in capsys.readouterr().out
