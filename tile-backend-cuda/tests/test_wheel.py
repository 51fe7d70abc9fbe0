"""The wheel, with and without a C compiler at build time, and the editable installation."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from fake_driver import COMPILER

PACKAGE = Path(__file__).parents[1]
EXTENSION = "tile_backend_cuda/launcher/_launch.abi3.so"
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package's sources elsewhere, so that nothing is built into the checkout."""
    ignored = shutil.ignore_patterns("*.so", "build", "dist", "__pycache__", "tests")
    return Path(shutil.copytree(PACKAGE, tmp_path / "package", ignore=ignored))


def built(copy: Path, target: str = "wheel", **environment: str) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(copy / "out")]
    variables = {**os.environ, **environment}
    done = subprocess.run(command, cwd=copy, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (copy / "out").glob("*.whl")
    return wheel


def imports(folder: Path) -> str:
    """What a fresh process says of the native launcher of the package in ``folder``."""
    code = "from tile_backend_cuda.launcher import native; print(native.module(), native.__file__)"
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), os.environ.get("PYTHONPATH", "")))}
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout
    assert str(folder) in said
    return said


@needs_compiler
def test_wheel_with_a_compiler(copy: Path, tmp_path: Path) -> None:
    wheel = built(copy)
    assert wheel.name.startswith("tile_backend_cuda-")
    assert "-cp310-abi3-linux_" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "site")
    assert names.count(EXTENSION) == 1
    assert "_launch.abi3.so" in imports(tmp_path / "site")


def test_wheel_without_a_compiler(copy: Path, tmp_path: Path) -> None:
    wheel = built(copy, CC=str(tmp_path / "no-compiler"))
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert EXTENSION not in archive.namelist()
        archive.extractall(tmp_path / "site")
    assert imports(tmp_path / "site").startswith("None ")


def test_a_compiler_that_fails(copy: Path) -> None:
    assert built(copy, CC="false").name.endswith("-py3-none-any.whl")


@needs_compiler
def test_editable(copy: Path) -> None:
    """The extension lies among the sources; a build without a compiler takes an old one away."""
    extension = copy / "src" / EXTENSION
    built(copy, "wheel:editable").unlink()
    assert extension.is_file()
    assert "_launch.abi3.so" in imports(copy / "src")
    built(copy, "wheel:editable", CC="false").unlink()
    assert not extension.exists()


@needs_compiler
def test_a_stale_extension_is_not_packed(copy: Path) -> None:
    (copy / "src" / EXTENSION).write_bytes(b"stale")
    with zipfile.ZipFile(built(copy)) as archive:
        assert archive.read(EXTENSION)[:4] == b"\x7fELF"
    shutil.rmtree(copy / "out")
    with zipfile.ZipFile(built(copy, CC="false")) as archive:
        assert EXTENSION not in archive.namelist()
