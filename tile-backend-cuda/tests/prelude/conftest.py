"""Lets the tests import the hand-written kernels beside them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tile_core.testing import machine

sys.path.insert(0, str(Path(__file__).parent / "kernels"))


@pytest.fixture
def emulator() -> None:
    if machine.compiler_or_none() is None:
        pytest.skip("no C++ compiler for the machine emulator")
