"""The same source files on every target: executed, or compiled and emulated, or emulated, and equal to the interpreter."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from support_table import KERNELS, PAGE, ROWS, Example, Row, page, sizes

import tile_core as tile
from tile_core.hardware import Target
from tile_core.testing.emulated import emulated


def made(example: Example) -> Any:
    module, _, function = example.kernel.rpartition(":")
    return getattr(importlib.import_module(module), function)(*example.arguments, **example.keywords)


def given(example: Example) -> list[Any]:
    """The arguments of a call; the result's tensor is the third."""
    data, out = example.data(), example.result()
    return data if out is None else [*data[:2], out, *data[2:]]


def outputs(example: Example, arguments: list[Any], returned: Any) -> np.ndarray:
    return np.asarray(returned if example.out is None else arguments[2])


def on_target(row: Row, example: Example) -> np.ndarray:
    kernel, arguments, target = made(example), given(example), Target.parse(row.target)
    if row.way == "executed":
        with tile.target(row.target):
            return outputs(example, arguments, kernel(*arguments))
    chosen = kernel.for_target(target)
    if row.way == "compiled":
        assert chosen.entry.artifact.data
    returned = emulated(chosen, arguments, {})
    return outputs(example, arguments, returned[0] if returned else None)


PROBLEMS = [e for kernel in KERNELS for e in sizes(kernel)]


@pytest.mark.parametrize("example", PROBLEMS, ids=lambda e: e.name)
@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.target)
def test_agrees_with_the_interpreter(row: Row, example: Example) -> None:
    arguments = given(example)
    with tile.target("interpreter"):
        wanted = outputs(example, arguments, made(example)(*arguments))
    assert example.problem(wanted, example.reference(*example.data())) == ""
    assert example.problem(on_target(row, example), wanted) == ""


def test_the_page_is_what_the_table_says() -> None:
    assert PAGE.read_text("utf8") == page(), "run python tests/integration/support_table.py --write"
