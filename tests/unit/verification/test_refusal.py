"""What is asked when a kernel is compiled, and that a refuted obligation is an error with its counterexample."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tile_core.language as T
from tile_core import settings
from tile_core.errors import InternalError, KernelError, TileError
from tile_core.hardware import Target
from tile_core.inference.schedule import crowds, program_order
from tile_core.runtime import compile
from tile_core.verification.plans import FAILED, OPEN, PROVED, Answer, Obligation, of_plan
from tile_core.verification.refusal import LARGE, refuse

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))

import mamba_chunk_scan

ROOT = Path(__file__).parents[3]
REFUTED = Answer(FAILED, "two elements in one place")
WITHOUT_SOLVER = """
import sys
sys.path.insert(0, {examples!r})
from gemm_relu import EXAMPLE, gemm_relu
from tile_core.hardware import Target
from tile_core.runtime.pipeline import legalized, make_plan
from tile_core.verification.plans import of_plan
from tile_core.verification.refusal import refuse
kernel = gemm_relu(**EXAMPLE["gemm_relu"]).for_target(Target.parse("cuda:sm_90a"))
refuse(of_plan(kernel.plan))
kernel.backend.codegen(kernel.info).emit(legalized(kernel.plan, kernel.backend))
print("z3" in sys.modules)
"""


def obligation(answer: Answer, **more: Any) -> Obligation:
    return Obligation("what", "of", lambda: answer, **more)


@pytest.mark.parametrize(
    ("verify", "more", "asked"),
    [
        ("auto", {}, True),
        ("auto", {"deep": True}, False),
        ("auto", {"size": LARGE + 1}, False),
        ("always", {"deep": True}, True),
        ("always", {"size": LARGE + 1}, True),
        ("never", {}, False),
    ],
)
def test_what_is_asked(verify: str, more: dict[str, Any], asked: bool) -> None:
    with settings.scope(verify=verify):
        if not asked:
            refuse([obligation(REFUTED, **more)])
            return
        with pytest.raises(InternalError, match="what is not so of of: two elements in one place"):
            refuse([obligation(REFUTED, **more)])


@pytest.mark.parametrize("status", [PROVED, OPEN])
def test_what_is_not_refuted_is_no_error(status: str) -> None:
    with settings.scope(verify="always"):
        refuse([obligation(Answer(status, ""))])


def test_no_such_value() -> None:
    with settings.scope(verify="sometimes"), pytest.raises(TileError, match="none of auto, always, never"):
        refuse([])


@T.prim_func
def twice(A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
    with T.Kernel(2, threads=64) as b:
        for i in T.Parallel(64):
            C[i] = A[i] + T.cast(b, "float32")


@T.prim_func
def beyond(A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64) as _:
        for i in T.Parallel(64):
            C[i] = A[i + 64]


def compiled(kernel: Any, verify: str) -> Callable[[], None]:
    def run() -> None:
        with settings.scope(verify=verify, dump="plan"):  # dumps are of kernels compiled anew
            compile(kernel, target="cpu")(np.zeros(64, np.float32), np.zeros(64, np.float32))

    return run


def test_two_blocks_write_one_element(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    compiled(twice, "auto")()
    with pytest.raises(KernelError, match=r"block b = \d and block b = \d write C\[\d+\]") as caught:
        compiled(twice, "always")()
    assert "C[i] = A[i]" in str(caught.value)


def test_an_index_leaves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KernelError, match=r"with i = 0 it is 64 of 64"):
        compiled(beyond, "auto")()


def test_a_broken_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that its own check did not see."""
    monkeypatch.setattr(crowds, "crowds", lambda _schedule: frozenset())
    monkeypatch.setattr(program_order, "checked", lambda schedule: schedule)
    monkeypatch.setattr(program_order, "faults", lambda _schedule: [])
    kernel = mamba_chunk_scan.chunk_scan(1, 512, 4, 1, 512, 32, 128, fused=True)
    plan = kernel.for_target(Target.parse("cuda:sm_90a")).plan
    with (
        settings.scope(verify="auto"),
        pytest.raises(InternalError, match=r"before .* has read it") as caught,
    ):
        refuse(of_plan(plan))
    assert "mamba_chunk_scan.py" in str(caught.value)


def test_the_solver_is_not_even_imported() -> None:
    code = WITHOUT_SOLVER.format(examples=str(ROOT / "examples"))
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "TILE_VERIFY": "auto"},
    )
    assert done.stdout.strip() == "False", done.stderr
