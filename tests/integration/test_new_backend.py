"""The page for vendors, executed: a new backend is written, installed, grown and checked, and the toy is what comes out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tile_core.errors import Unsupported
from tile_core.scaffold import new_backend

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "write_a_backend.md"
TOY = ROOT / "tests" / "plugins" / "tile-backend-toy"
STEP = re.compile(r"(?:^`(?P<file>src/\S+)`:\n\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```", re.M | re.S)


def contents(folder: Path) -> dict[str, str]:
    files = (p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    return {str(p.relative_to(folder)): p.read_text("utf8") for p in files}


def named_toy(text: str) -> str:
    return text.replace("mychip", "toy").replace("Mychip", "Toy")


def shell(folder: Path, commands: str) -> None:
    """Run lines as a reader would who has tile installed; what pip installs goes into a folder of its own."""
    site = folder / "site"
    more = {
        "PIP_TARGET": str(site),
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip's sense of it: no isolation
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH")))),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    for line in commands.splitlines():
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            cwd=folder,
            env={**os.environ, **more},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"


def test_the_page_makes_the_toy(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    package = tmp_path / "tile-backend-mychip"
    steps = list(STEP.finditer(PAGE.read_text("utf8")))
    assert sum(bool(s["file"]) for s in steps) == 4
    for step in steps:
        if step["file"]:
            (package / step["file"]).write_text(step["text"])
        elif step["language"] == "bash":
            shell(tmp_path, step["text"])
    grown = {
        named_toy(name): named_toy(text) for name, text in contents(package).items() if "build" not in name
    }
    assert grown == contents(TOY)


def test_the_toy_is_small() -> None:
    code = [text for name, text in contents(TOY).items() if name.endswith((".py", ".h", ".cpp"))]
    assert sum(text.count("\n") for text in code) <= 300


@pytest.mark.parametrize("name", ["", "My-chip", "9lives", "class", "tile_x"])
def test_names_that_cannot_be(name: str, tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="cannot be the name of a backend"):
        new_backend(name, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_name_that_is_taken(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="'cpu' is there already, from tile-core"):
        new_backend("cpu", tmp_path / "new")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(Unsupported, match="is there already"):
        new_backend("mychip", tmp_path)
    with pytest.raises(Unsupported, match="is there already"):
        new_backend("mychip", tmp_path / "mine")
