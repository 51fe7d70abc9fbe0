"""The README has the two commands that CI and newcomers run."""

from __future__ import annotations

import re
import subprocess

import pytest
from tracked import ROOT

README = ROOT / "README.md"
pytestmark = pytest.mark.skipif(not README.is_file(), reason="no README.md yet")


def blocks() -> list[str]:
    return re.findall(r"^```bash\n(.*?)^```", README.read_text("utf8"), re.M | re.S)


def test_two_commands_of_one_line():
    first, second = (b.strip() for b in blocks()[:2])
    assert "\n" not in first
    assert "\n" not in second
    assert "examples/matmul.py" in first
    assert "pytest" in second


def test_commands_need_no_bash():
    for block in blocks()[:2]:
        subprocess.run(["sh", "-n", "-c", block], check=True)
