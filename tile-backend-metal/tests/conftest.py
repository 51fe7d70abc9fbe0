"""A Mac that is not there: for tests of everything that launches, and of whole kernels under the emulator."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "fake"))
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from emulated_mac import EmulatedLauncher
from fake_metal import FakeMetal
from fake_mps import FakeMps

import tile_core as tile
from tile_backend_metal import probe
from tile_core import settings
from tile_core.hardware import Device, Target
from tile_core.registry import registry
from tile_core.testing import machine

MAC = Device(Target("metal", "apple9"), 0, "Fake M4", torch="mps:0")


@pytest.fixture
def emulator() -> None:
    assert machine.compiler_or_none(), "install g++ 12 or newer: MSL runs under the machine emulator"


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """The metal backend on a Mac with one device."""
    found = registry().get("metal")
    monkeypatch.setattr(probe, "on_mac", lambda: True)
    monkeypatch.setattr(found, "devices", lambda: (MAC,))
    with settings.scope(cache_dir=str(tmp_path / "cache")):
        yield found


@pytest.fixture
def metal(monkeypatch: pytest.MonkeyPatch) -> FakeMetal:
    """PyObjC's module, which remembers what it was asked."""
    made = FakeMetal()
    monkeypatch.setitem(sys.modules, "Metal", made)
    return made


@pytest.fixture
def mps(monkeypatch: pytest.MonkeyPatch) -> FakeMps:
    """``torch`` with a library for the GPU; its tensors claim to be there."""
    made = FakeMps()
    monkeypatch.setitem(sys.modules, "torch", made)
    return made


@pytest.fixture
def mac(emulator: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kernels for metal are called as on a Mac; their MSL, past the lint, runs under the machine emulator."""
    found = registry().get("metal")
    monkeypatch.setattr(found, "devices", lambda: (MAC,))
    monkeypatch.setattr(found, "launcher", EmulatedLauncher)
    with tile.target("metal:apple9"):
        yield
