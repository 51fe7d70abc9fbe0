"""Ready-made rows of ``tile doctor``: is a library, a package or a program there. None of them raises or imports anything."""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version

from .backend import Check, Finding

DEVICES = "devices"  # the row that says what devices there are


def library(name: str, sonames: Sequence[str], remedy: str, level: str = "error") -> Check:
    """Whether one of the shared libraries loads. ``level`` is that of a missing one."""

    def run() -> Finding:
        for soname in sonames:
            try:
                ctypes.CDLL(soname)
            except OSError:
                continue
            return Finding("ok", soname)
        return Finding(level, f"{' and '.join(sonames)} cannot be loaded", remedy)

    return Check(name, run)


def package(name: str, distributions: Sequence[str], level: str = "warning") -> Check:
    """Whether one of the distributions is installed, and its version."""

    def run() -> Finding:
        for distribution in distributions:
            try:
                return Finding("ok", f"{distribution} {version(distribution)}")
            except PackageNotFoundError:
                continue
        return Finding(
            level, f"{' or '.join(distributions)} is not installed", f"pip install {distributions[0]}"
        )

    return Check(name, run)


def program(name: str, executables: Sequence[str], remedy: str, level: str = "warning") -> Check:
    """Whether one of the programs is on the path."""

    def run() -> Finding:
        found = next((path for e in executables if (path := shutil.which(e))), None)
        return Finding("ok", found) if found else Finding(level, f"no {' or '.join(executables)}", remedy)

    return Check(name, run)


def devices(names: Callable[[], Sequence[str]], remedy: str) -> Check:
    """What devices there are. ``names`` gives their names; a fault in it is shown as the finding."""

    def run() -> Finding:
        try:
            found = names()
        except Exception as error:
            return Finding("error", f"{type(error).__name__}: {error}", remedy)
        return Finding("ok", ", ".join(found)) if found else Finding("warning", "none", remedy)

    return Check(DEVICES, run)
