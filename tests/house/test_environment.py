"""The test environment has all tools that tests run, and no GPU libraries: a plain `pip install torch` would bring gigabytes."""

from __future__ import annotations

from importlib.metadata import distributions

import pytest
from tracked import ROOT

from tile_core.registry import registry

# compilers and disassemblers of device code that tests run without a device
NEEDED = {"nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12", "nvidia-cuda-cuobjdump", "nvidia-cuda-nvdisasm"}


def test_no_gpu_libraries():
    names = {d.metadata["Name"].lower() for d in distributions()}
    assert {n for n in names if n.startswith("nvidia-")} - NEEDED == set()


# Tools that tests run, as rows of `tile doctor`: tests/install brings them. Without one, tests of the kit would be left out.
TOOLS = (
    ("rocm", "compiler"),
    ("rocm", "linker"),
    ("rocm", "disassembler"),
    ("webgpu", "wgpu"),
    ("webgpu", "devices"),
    ("webgpu", "node"),
    ("webgpu", "tint"),
    ("webgpu", "browser"),
    ("metal", "emulator"),
)


@pytest.mark.parametrize(("backend", "check"), TOOLS)
def test_tools_are_here(backend: str, check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_PATH", str(ROOT / "tile-backend-webgpu" / "tests" / "web" / "node_modules"))
    (found,) = (c.run() for c in registry().get(backend).checks() if c.name == check)
    assert found.level == "ok", f"{found.message}: run tests/install ({found.remedy})"
