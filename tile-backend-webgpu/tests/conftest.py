"""Tools that the tests run: an adapter, Node.js with its packages, a browser. A missing one fails and tells the remedy."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tile_backend_webgpu import probe
from tile_backend_webgpu.checks import BROWSERS
from tile_backend_webgpu.compiler import node as programs
from tile_core import settings
from tile_core.errors import BackendError
from tile_core.hardware import Device

WEB = Path(__file__).parent / "web"
sys.path[:0] = [str(WEB), str(WEB.parent)]

INSTALL = "run tile-backend-webgpu/tests/web/install.sh"


@pytest.fixture
def adapter() -> Device:
    """A device that is compiled for with all that it grants."""
    found = [d for d in probe.devices() if d.target.arch == "lavapipe"]
    if not found:
        pytest.fail("no lavapipe here: pip install wgpu; apt-get install mesa-vulkan-drivers libvulkan1")
    return found[0]


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of npm's packages, which programs of Node.js are told of."""
    folder = WEB / "node_modules"
    monkeypatch.setenv("NODE_PATH", os.fspath(folder))
    for name in ("webgpu", "playwright-core"):
        if not (folder / name).is_dir():
            pytest.fail(f"the npm package {name} is not here: {INSTALL}")
    return folder


@pytest.fixture
def node(packages: Path) -> str:
    """Node.js, with the packages at hand."""
    try:
        return programs.node()
    except BackendError as error:
        pytest.fail(f"{error}")


@pytest.fixture
def chromium() -> str:
    """A browser without a window."""
    found = next((p for e in BROWSERS if (p := shutil.which(e))), None)
    if found is None:
        pytest.fail("no Chromium here: apt-get install chromium")
    return found


@pytest.fixture(autouse=True)
def fresh(tmp_path_factory: pytest.TempPathFactory):
    """No kernel comes from an earlier run. A test's own folder holds nothing but what the test writes."""
    with settings.scope(cache_dir=str(tmp_path_factory.mktemp("cache"))):
        yield
