"""Rows of ``tile doctor``: the system and the device."""

from __future__ import annotations

import platform
import sys

from tile_core.backend import Check, Finding
from tile_core.checks import devices

from . import probe


def _system() -> Finding:
    if sys.platform == "darwin":
        return Finding("ok", f"macOS {platform.mac_ver()[0]}")
    return Finding(
        "error", f"{platform.system()} has no Metal", "kernels for it can be generated here, and run on a Mac"
    )


CHECKS = (
    Check("system", _system),
    devices(lambda: [d.name for d in probe.devices()], "no Apple GPU is here"),
)
