"""The conformance kit itself, run from outside on the example backend and on ones that are wrong on purpose."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tile_core import hardware
from tile_core.backend import read_toml
from tile_core.testing import arguments, requires
from tile_core.testing.kernels import BY_NAME, CASES
from tile_core.testing.record import text

MODULE = "from tile_core.testing.conformance import *\nTILE_BACKEND = {name!r}\n"


def kit(folder: Path, *options: str, name: str = "example", **files: str) -> tuple[int, str]:
    """Run the kit in ``folder``; gives pytest's exit status and output."""
    (folder / "test_it.py").write_text(MODULE.format(name=name))
    for file, content in files.items():
        (folder / file.replace("__", ".")).write_text(content)
    pytest_ = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tile_core.testing.plugin",
        "-p",
        "no:cacheprovider",
    ]
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [*pytest_, *options],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    return done.returncode, done.stdout + done.stderr


def test_numerics_are_recorded(tmp_path: Path) -> None:
    status, output = kit(tmp_path, "-k", "numerics and elementwise", "--tile-record", "devices.toml")
    assert status == 0, output
    (row,) = read_toml((tmp_path / "devices.toml").read_text())["device"]
    tested = hardware.TestedDevice.of(row)
    assert (tested.device, tested.arch, tested.passed, tested.failed) == ("this process", "host", 9, 0)
    assert tested.backend_version == "0.1.0"


def test_a_run_without_a_device_records_nothing(tmp_path: Path) -> None:
    status, output = kit(tmp_path, "-m", "l0", "--tile-record", "devices.toml")
    assert status == 0, output
    assert not (tmp_path / "devices.toml").exists()


XFAIL = '[[xfail]]\ntest = "{}"\nreason = "it has to be so"\nlink = ""\n'


def test_known_failures_are_strict(tmp_path: Path) -> None:
    status, output = kit(
        tmp_path, "-k", "numerics and integers", conformance_xfail__toml=XFAIL.format("*-integers?")
    )
    assert status == 1
    assert "XPASS(strict)" in output


def test_known_failures_name_tests_that_exist(tmp_path: Path) -> None:
    status, output = kit(tmp_path, conformance_xfail__toml=XFAIL.format("test_gone"))
    assert status != 0
    assert "no test is named 'test_gone'" in output


def test_backend_by_option(tmp_path: Path) -> None:
    options = ("--pyargs", "tile_core.testing.conformance", "--tile-backend", "example", "-m", "l0")
    status, output = kit(tmp_path, *options)
    assert status == 0, output


def test_backend_that_is_not_there_fails(tmp_path: Path) -> None:
    status, output = kit(tmp_path, "-m", "l0", name="absent")
    assert status == 1
    assert "no backend named 'absent'" in output


def test_a_wrong_element_is_named() -> None:
    case = BY_NAME["copy-float32-ragged"]
    made = arguments.made(case)
    other = arguments.copies(made)
    other[1][2, 3] += 1
    with pytest.raises(AssertionError, match=r"1 of 1485 elements of B are wrong, first B\[2, 3\]"):
        arguments.compare(case, other, made)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_case_can_be_built(case) -> None:
    assert case.program.params
    assert {p.value.dtype.name for p in case.program.params} <= case.dtypes


def test_reason_to_skip(hopper_like) -> None:
    assert requires.missing(hopper_like, dtypes=["float16"], spaces=["shared"]) == ""
    reason = requires.missing(hopper_like, dtypes=["float64"], spaces=["l1"], features=["x"])
    assert reason == "some:thing has no float64, no memory 'l1', no feature 'x'"


@pytest.fixture
def hopper_like():
    from tile_core.hardware import MemorySpace, Target, TargetInfo

    return TargetInfo(
        Target("some", "thing"),
        spaces=(MemorySpace("global", 1, 1, "grid"), MemorySpace("shared", 1, 1, "block")),
        engines=(),
        tokens=(),
        subgroup=32,
        max_threads=1024,
        dtypes=frozenset({"float16"}),
        atoms=(),
        peaks={},
        cores=1,
        clock=1.0,
    )


def test_row_text_reads_back() -> None:
    tested = hardware.TestedDevice(
        'a "b"', "sm", "580.1", "13.0", "0.1.0", "1.0", "2026-01-01", 3, 0, {"no float16": 2}, "ff"
    )
    assert read_toml(text(tested)) == {
        "device": [{n: getattr(tested, n) for n in hardware.TestedDevice.__slots__}]
    }
