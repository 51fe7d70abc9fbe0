"""What a benchmark ran on: processor, cores, versions, command."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PACKAGES = ("tile-core", "numpy", "apache-tvm", "llvmlite")


def describe(command: str) -> dict[str, Any]:
    """Facts to keep beside the figures."""
    return {
        "command": command,
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "python": sys.version.split()[0],
        "versions": dict(_versions()),
    }


def _versions() -> Iterator[tuple[str, str]]:
    """Of what is installed: a target that generates text needs neither TVM nor LLVM."""
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            yield package, version(package)


def _processor() -> str:
    try:
        import llvmlite.binding as llvm
    except ImportError:
        return f"{platform.machine()} {platform.processor()}"
    return f"{platform.machine()} {llvm.get_host_cpu_name()}"
