"""A driver without a device, for tests of everything that launches."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "fake"))

from fake_driver import COMPILER, DEVICES, HERE, Fake, compiled, extension
from written import Written

from tile_backend_cuda.timer import CudaTimer
from tile_core import settings
from tile_core.registry import registry


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory):
    """(the fake driver's library, the native launcher)."""
    if COMPILER is None:
        pytest.skip("no C compiler: the fake driver cannot be built")
    folder = tmp_path_factory.mktemp("fake")
    return compiled(HERE / "fakecuda.c", folder / "libfakecuda.so", "-lpthread"), extension(folder)


@pytest.fixture
def fake(built) -> Iterator[Fake]:
    made = Fake(*built)
    yield made
    made.library.fake_reset()


@pytest.fixture(params=["native", "portable"])
def how(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def backend(fake: Fake, how: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """The cuda backend on the fake driver; tensors of the host are its."""
    found = registry().get("cuda")
    changes = {
        "torch_devices": (("cpu", False),),
        "dlpack_devices": (1,),
        "devices": lambda: DEVICES,
        "launcher": lambda device: fake.launcher(how, device.index),
        "timer": lambda device: CudaTimer(fake.launcher(how, device.index)),
        "lowering": lambda info: Written(),
        "codegen": lambda info: Written(),
    }
    for name, value in changes.items():
        monkeypatch.setattr(found, name, value, raising=False)
    with settings.scope(cache_dir=str(tmp_path / "cache")):
        yield found
