"""Rows of ``tile doctor``: the library that runs WGSL here and its adapters; what checks WGSL as a browser does; a browser."""

from __future__ import annotations

from collections.abc import Callable

from tile_core.backend import Check, Finding
from tile_core.checks import devices, package, program
from tile_core.errors import BackendError

from . import probe
from .compiler import node

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
DRIVER = (
    "pip install wgpu, and install the GPU's Vulkan driver; without a GPU: "
    "apt-get install mesa-vulkan-drivers libvulkan1"
)


def _tool(name: str, find: Callable[[], object]) -> Check:
    """Whether a tool that only checks text is found, and the remedy that looking for it tells."""

    def run() -> Finding:
        try:
            return Finding("ok", str(find()))
        except BackendError as error:
            return Finding("warning", error.message, error.help)

    return Check(name, run)


CHECKS = (
    package("wgpu", ("wgpu",)),
    devices(lambda: [d.name for d in probe.devices()], DRIVER),
    _tool("node", lambda: node.node()),
    _tool("tint", lambda: node.package("webgpu")),
    program("browser", BROWSERS, "apt-get install chromium, or any browser with WebGPU; only pages need it"),
)
