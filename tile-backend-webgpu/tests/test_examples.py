"""The examples on lavapipe, at even and at ragged sizes, for all that it grants and for the limits that every device grants."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tile_core as tile
from tile_core.hardware import Device

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "device"))

from example_cases import FAMILIES, Example

# what the tiles of an example need beyond the 16 KB of the default limits
SMALLER = {"flash_attention:attention": {"block_M": 32, "block_N": 32}}
SMALL = [c for family in FAMILIES for c in family() if not c.large and "kernels" not in c.kernel]
# for the default limits the last, which is the most ragged, of each kernel
LAST = tuple({c.kernel: c for c in SMALL}.values())
RUNS = [*((e, "lavapipe") for e in SMALL), *((e, "default") for e in LAST)]


@pytest.mark.parametrize(("example", "arch"), RUNS, ids=lambda x: x if isinstance(x, str) else x.name)
def test_example(adapter: Device, example: Example, arch: str):
    data, out = example.data(), example.result()
    if arch == "default":
        example = replace(example, keywords={**example.keywords, **SMALLER.get(example.kernel, {})})
    with tile.target(f"webgpu:{arch}"):
        got = example.run(data, out)
    assert example.problem(np.asarray(got), example.reference(*data)) == ""
