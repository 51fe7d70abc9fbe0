"""Lets the tests import the plain modules beside them; a HIP runtime without a device."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path += [str(Path(__file__).parent / folder) for folder in ("published", "fake", "kernels")]

from fake_hip import DEVICES, Fake, library

from tile_backend_rocm.timer import RocmTimer
from tile_core import settings
from tile_core.registry import registry


@pytest.fixture(scope="session")
def fake_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Needs a C compiler: apt-get install g++."""
    return library(tmp_path_factory.mktemp("fake"))


@pytest.fixture
def fake(fake_library: Path) -> Iterator[Fake]:
    made = Fake(fake_library)
    yield made
    made.library.fake_reset()


@pytest.fixture
def backend(fake: Fake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """The rocm backend on the fake runtime; tensors of the host are its."""
    found = registry().get("rocm")
    changes = {
        "torch_devices": (("cpu", False),),
        "dlpack_devices": (1,),
        "devices": lambda: DEVICES,
        "launcher": lambda device: fake.launcher(device.index),
        "timer": lambda device: RocmTimer(fake.launcher(device.index)),
    }
    for name, value in changes.items():
        monkeypatch.setattr(found, name, value, raising=False)
    with settings.scope(cache_dir=str(tmp_path / "cache")):
        yield found
