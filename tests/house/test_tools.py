"""The linters pass."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tracked import ROOT

BIN = Path(sys.executable).parent


@pytest.mark.parametrize(
    "command",
    [
        ("ruff", "check", "."),
        ("ruff", "format", "--check", "."),
        ("lint-imports", "--no-cache"),
        ("codespell",),
    ],
    ids=" ".join,
)
def test_tool(command):
    done = subprocess.run([str(BIN / command[0]), *command[1:]], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
