"""What a benchmark ran on: processor, cores, versions, command."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import version
from typing import Any

PACKAGES = ("tile-core", "numpy", "apache-tvm", "llvmlite")


def describe(command: str) -> dict[str, Any]:
    """Facts to keep beside the figures."""
    return {
        "command": command,
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "python": sys.version.split()[0],
        "versions": {p: version(p) for p in PACKAGES},
    }


def _processor() -> str:
    import llvmlite.binding as llvm

    return f"{platform.machine()} {llvm.get_host_cpu_name()}"
