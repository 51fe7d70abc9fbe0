"""The page of the emulator lists the findings that there are."""

from __future__ import annotations

from pathlib import Path

from tile_core.testing.machine import CODES

PAGE = Path(__file__).parents[3] / "docs" / "emulator.md"


def test_codes():
    text = PAGE.read_text("utf8")
    for code, meaning in CODES.items():
        assert f"| `{code}` | {meaning} |" in text
