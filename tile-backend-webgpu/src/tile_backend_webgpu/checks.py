"""Rows of ``tile doctor``: the library that runs WGSL outside a browser, and its adapters."""

from __future__ import annotations

from tile_core.checks import devices, package

from . import probe

CHECKS = (
    package("wgpu", ("wgpu",)),
    devices(lambda: [d.name for d in probe.devices()], "import wgpu in the program to see its adapters"),
)
