"""`import tile_core` is light and fast, and so are the modules that start-up and the warm path use."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

import pytest

MILLISECONDS = 150
HEAVY = {"tvm", "tvm_ffi", "torch", "z3", "numpy", "ml_dtypes", "llvmlite", "pluggy"}
CODE = """
import sys, time, json
begin = time.perf_counter()
import {module}
spent = time.perf_counter() - begin
print(json.dumps([spent * 1e3, sorted({{m.partition(".")[0] for m in sys.modules}})]))
"""


def imported(module: str) -> tuple[float, set[str]]:
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(module=module)], capture_output=True, text=True, check=True
    )
    spent, names = json.loads(done.stdout)
    return spent, set(names)


def test_import_is_light():
    _, names = imported("tile_core")
    assert not names & HEAVY
    assert not [n for n in names if n.startswith("tile_backend")]


def test_import_is_fast():
    assert statistics.median(imported("tile_core")[0] for _ in range(5)) < MILLISECONDS


@pytest.mark.parametrize(
    "module", ["tile_core.language", "tile_core.backend", "tile_core.registry", "tile_core.select"]
)
def test_no_framework_comes_with(module):
    assert not imported(module)[1] & {"tvm", "tvm_ffi", "torch", "z3", "llvmlite"}
