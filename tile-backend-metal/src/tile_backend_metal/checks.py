"""Rows of ``tile doctor``: the system, the ways to launch, the offline compiler and the device."""

from __future__ import annotations

import platform
import shutil
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from tile_core.backend import Check, Finding
from tile_core.checks import devices
from tile_core.testing.machine import compiler_or_none

from . import probe

MACOS = (13, 0)  # MSL 3.0
TORCH = (2, 7)  # torch.mps.compile_shader
OBJECTIVE = "pyobjc-framework-Metal"
ELSEWHERE = "kernels can be generated here, and run on a Mac"


def _system() -> Finding:
    if not probe.on_mac():
        return Finding("error", f"{platform.system()} has no Metal", ELSEWHERE)
    have = platform.mac_ver()[0]
    if _numbers(have) < MACOS:
        return Finding("error", f"macOS {have} has no MSL 3.0", f"update to macOS {MACOS[0]} or newer")
    return Finding("ok", f"macOS {have}")


def _torch() -> Finding:
    """By what is installed: nothing is imported."""
    if not probe.on_mac():
        return Finding("ok", "not needed here")
    try:
        have = version("torch")
    except PackageNotFoundError:
        return Finding(
            "warning", "torch is not installed: only arrays of the host can be passed", "pip install torch"
        )
    if _numbers(have) < TORCH:
        need = ".".join(map(str, TORCH))
        return Finding(
            "warning", f"torch {have} has no torch.mps.compile_shader", f"pip install 'torch>={need}'"
        )
    if platform.machine() != "arm64":
        return Finding(
            "warning",
            f"torch for {platform.machine()} has no mps",
            "use a Python for arm64: this one is translated",
        )
    return Finding("ok", f"torch {have}")


def _objective() -> Finding:
    if not probe.on_mac():
        return Finding("ok", "not needed here")
    if find_spec("Metal") is None:
        return Finding(
            "warning", "PyObjC is missing: only torch tensors can be passed", f"pip install {OBJECTIVE}"
        )
    return Finding("ok", "PyObjC")


def _offline() -> Finding:
    if not probe.on_mac():
        return Finding("ok", "not needed here")
    found = shutil.which("xcrun")
    if found is None:
        return Finding("ok", "none: Metal compiles at the launch")
    return Finding("ok", found)


def _emulator() -> Finding:
    found = compiler_or_none()
    if found is None:
        return Finding(
            "warning",
            "no C++ compiler: MSL cannot be run without a Mac",
            "install g++ (12 or newer), or set CXX",
        )
    return Finding("ok", f"{found}, for kernels as emulated source")


def _numbers(text: str) -> tuple[int, ...]:
    parts = text.split("+")[0].split(".")[:2]
    return tuple(int(p) for p in parts if p.isdigit())


CHECKS = (
    Check("system", _system),
    Check("torch", _torch),
    Check("pyobjc", _objective),
    Check("offline compiler", _offline),
    Check("emulator", _emulator),
    devices(
        lambda: [d.name for d in probe.devices()], "kernels run on a Mac with Apple silicon, M1 or newer"
    ),
)
