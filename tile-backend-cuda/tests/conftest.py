"""A driver without a device, for tests of everything that launches."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "fake"))

from fake_driver import COMPILER, HERE, Fake, compiled, extension


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
