"""The further examples against numpy: on the ``cpu`` target, in the interpreter, and as Hopper's source under the emulator."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "device"))

from attention_cases import ATTENTIONS
from example_cases import Example
from linear_cases import FAMILIES as LINEAR
from product_cases import FAMILIES as PRODUCTS

import tile_core as tile
from tile_core.hardware import Target
from tile_core.testing.emulated import emulated

SMALL = [e for family in (*ATTENTIONS, *LINEAR, *PRODUCTS) for e in family() if not e.large]
MODES = ("early", "late", "random")  # when asynchronous operations take place
MODULES = sorted({e.kernel.partition(":")[0] for e in SMALL})


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("example", SMALL, ids=lambda e: e.name)
def test_executed(example: Example, target: str) -> None:
    with tile.target(target):
        got = example.run(example.data(), example.result())
    assert example.problem(got, example.reference(*example.data())) == ""


@pytest.mark.parametrize("example", SMALL, ids=lambda e: e.name)
def test_emulated(example: Example) -> None:
    module, _, function = example.kernel.rpartition(":")
    made: Any = getattr(importlib.import_module(module), function)(*example.arguments, **example.keywords)
    kernel, want = made.for_target(Target.parse("cuda:sm_90a")), example.reference(*example.data())
    found: dict[str, str] = {}
    for mode in MODES:
        data, out = example.data(), example.result()
        given = data if out is None else [*data[:2], out, *data[2:]]
        returned = emulated(kernel, given, example.dims, mode)
        found[mode] = example.problem(returned if out is None else out, want)
    assert found == dict.fromkeys(MODES, "")


@pytest.mark.parametrize("module", MODULES)
def test_main_runs(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    importlib.import_module(module).main()
    assert "error" in capsys.readouterr().out
