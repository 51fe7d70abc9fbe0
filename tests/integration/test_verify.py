"""Every example's plan, for targets with and without engines: nothing fails, and what is not proved is guarded."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "device"))

from example_cases import cases

from tile_core.hardware import Target
from tile_core.runtime.pipeline import emitted
from tile_core.verification.plans import GUARDED, PROVED, verified

ROOT = Path(__file__).parents[2]
TARGETS = ("cuda:sm_90a", "cuda:sm_80", "rocm:gfx942", "cpu")
EXAMPLES = {c.kernel: c for c in cases("") if not c.large and "kernels" not in c.kernel and c.arguments}


# tiles of these are larger than the LDS of a CDNA3 compute unit
TOO_LARGE = {("mla_prefill:prefill", "rocm:gfx942"), ("fp8_block_gemm:fp8_gemm", "rocm:gfx942")}


@pytest.mark.parametrize(
    ("name", "target"), [(n, t) for n in EXAMPLES for t in TARGETS if (n, t) not in TOO_LARGE]
)
def test_example(name: str, target: str) -> None:
    example = EXAMPLES[name]
    module, _, function = name.rpartition(":")
    made: Any = getattr(importlib.import_module(module), function)(*example.arguments, **example.keywords)
    kernel = made.for_target(Target.parse(target))
    rows = verified(kernel.plan, emitted=emitted(kernel.plan, kernel.backend))
    assert rows
    assert [r for r in rows if r.status not in (PROVED, GUARDED)] == []


def test_command() -> None:
    command = [sys.executable, "-m", "tile_core", "verify", "examples/gemm_relu.py:gemm_relu", "--json"]
    done = subprocess.run([*command, "--target", "cuda:sm_90a"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = {r["what"]: r for r in json.loads(done.stdout)}
    assert rows["order kept, nobody stuck"]["status"] == PROVED
    assert rows["written once"]["status"] == PROVED


def test_certificates(tmp_path: Path) -> None:
    """What the solver was asked can be asked again."""
    import z3

    command = [sys.executable, "-m", "tile_core", "verify", "examples/gemm_relu.py:gemm_relu"]
    command += ["--target", "cuda:sm_90a", "--certificates", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    files = sorted(tmp_path.glob("*.smt2"))
    assert f"{len(files)} certificates in" in done.stdout
    assert len(files) >= 4
    for file in files:
        assert file.read_text().splitlines()[1].startswith("; unsat, z3 ")
        solver = z3.Solver()
        solver.from_file(str(file))
        assert solver.check() == z3.unsat
