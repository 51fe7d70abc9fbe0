"""The command line, as a user meets it: every command, JSON, exit status, and what ``--help`` imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tile_core.cli import COMMANDS, main
from tile_core.cli.inspect import STAGES

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
MATMUL = f"{EXAMPLES}/matmul.py:matmul"


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("TILE_TARGET", raising=False)


def tile(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tile_core", *arguments], capture_output=True, text=True, check=False, cwd=ROOT
    )
    return done.returncode, done.stdout + done.stderr


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", [c.name for c in COMMANDS])
def test_help_imports_nothing_heavy(command: str) -> None:
    code = f"""
import sys
from tile_core.cli import main
try:
    main([{command!r}, "--help"])
except SystemExit as stop:
    assert stop.code == 0
print([m for m in ("numpy", "tvm", "tvm_ffi", "torch", "z3", "llvmlite", "rich") if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(printed(capsys, "doctor", "--json"))
    assert {"python", "numpy", "apache-tvm", "cache"} <= {r["check"] for r in rows}
    assert all(r["level"] == "ok" for r in rows if r["of"] in ("tile-core", "cpu"))
    assert "numpy" in printed(capsys, "doctor")


def test_targets_and_devices(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {r["backend"]: r for r in json.loads(printed(capsys, "targets", "--json"))}
    assert rows["cpu"]["state"] == "ok"
    assert "sm_90a" in rows["cuda"]["targets"]
    devices = json.loads(printed(capsys, "devices", "--json"))
    assert any(d["target"].startswith("cpu:") for d in devices)
    assert len(json.loads(printed(capsys, "devices", "cpu", "--json"))) == 1


@pytest.mark.parametrize("stage", STAGES)
def test_inspect_every_stage(stage: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "inspect", MATMUL, "--emit", stage, "--target", "cpu")
    expected = {
        "program": "copy(A, A_shared)",
        "plan": "C_frag is cleared",
        "graph": "graph matmul",
        "schedule": "no loop has ops that run by themselves",
        "source": "define",
        "ir": "prim_func",
    }
    assert expected[stage] in text
    found = json.loads(printed(capsys, "inspect", MATMUL, "--emit", stage, "--target", "cpu", "--json"))
    assert found["stage"] == stage
    assert found["text"]


@pytest.mark.parametrize(
    "target", ["cuda:sm_80", "cuda:sm_90a", "rocm:gfx942", "metal:apple9", "ascend:910B1", "webgpu:default"]
)
def test_plans_for_targets_that_are_not_here(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "inspect", f"{EXAMPLES}/gemm_relu.py:gemm_relu", "--target", target)
    assert f"for {target}" in text


def test_inspect_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "graph.svg"
    printed(
        capsys, "inspect", f"{EXAMPLES}/flash_attention.py:attention", "--emit", "graph", "--svg", str(file)
    )
    assert ElementTree.parse(file).getroot().tag.endswith("svg")


def test_run_compares_with_the_interpreter(capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(
        printed(
            capsys,
            "run",
            f"{EXAMPLES}/gemm_relu.py:gemm_relu",
            "--arg",
            "M=40",
            "--arg",
            "N=24",
            "--json",
        )
    )
    assert rows[0]["agrees"]
    assert rows[0]["shape"] == [40, 24]  # K is that of the file's EXAMPLE


def test_an_eager_kernel_with_tensor_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    tensors = ("--arg", "A=float32[100]", "--arg", "B=float32[100]")
    assert json.loads(printed(capsys, "run", f"{EXAMPLES}/vector_add.py:add", *tensors, "--json"))[0][
        "agrees"
    ]


def test_bench(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = json.loads(
        printed(capsys, "bench", f"{EXAMPLES}/softmax.py:softmax", "--repeat-ms", "5", "--json")
    )
    assert row["median_ms"] > 0
    assert row["samples"] >= 3


def test_cache(capsys: pytest.CaptureFixture[str]) -> None:
    printed(capsys, "run", f"{EXAMPLES}/softmax.py:softmax")
    (row,) = json.loads(printed(capsys, "cache", "--json"))
    assert row["kernels"] >= 1
    assert {r["kernel"] for r in json.loads(printed(capsys, "cache", "list", "--json"))} == {"softmax"}
    (row,) = json.loads(printed(capsys, "cache", "clear", "--json"))
    assert row["removed"] >= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("inspect", "nowhere.py:kernel"), "there is no file nowhere.py"),
        (("inspect", f"{EXAMPLES}/matmul.py:matmull"), "did you mean 'matmul'?"),
        (("inspect", "matmul"), "write FILE:KERNEL"),
        (("inspect", MATMUL, "--target", "cudda"), "Did you mean 'cuda'?"),
        (("inspect", MATMUL, "--target", "cuda:sm_12"), "sm_90a"),
        (("run", MATMUL, "--target", "cuda:sm_90a"), "a kernel for cuda cannot reach them"),
        (("inspect", MATMUL, "--arg", "M"), "write --arg NAME=VALUE"),
        (("inspect", MATMUL, "--arg", "Q=1"), "it is matmul(M, N, K, block_M"),
        (("run", MATMUL, "--dim", "m"), "write --dim NAME=128"),
        (("targets", "cudda"), "did you mean 'cuda'?"),
        (("devices", "cudda"), "did you mean 'cuda'?"),
    ],
)
def test_mistakes_end_with_status_1_and_no_traceback(arguments: tuple[str, ...], message: str) -> None:
    status, text = tile(*arguments)
    assert status == 1
    assert message.lower() in text.lower()
    assert "Traceback" not in text


def test_no_command_shows_the_help() -> None:
    status, text = tile()
    assert status == 2
    assert "doctor" in text
    assert tile("--version") == (0, "0.1.0\n")
    assert tile("nonsense")[0] == 2


def test_output_into_a_closed_pipe() -> None:
    done = subprocess.run(
        f"{sys.executable} -m tile_core doctor | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    )
    assert "Traceback" not in done.stderr
