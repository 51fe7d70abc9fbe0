"""The fake HIP runtime, compiled, and what it has seen."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

from tile_backend_rocm.launcher import RocmLauncher
from tile_backend_rocm.launcher.runtime import Runtime
from tile_core.hardware import Device, Target
from tile_core.testing.machine.compiler import compiler

HERE = Path(__file__).parent
STRICT = ("-x", "c", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")
DEVICES = tuple(Device(Target("rocm", "gfx942"), n, f"Fake {n}") for n in range(2))


def library(folder: Path, name: str = "fakehip") -> Path:
    """Compile one of the sources here, warnings being errors."""
    output = folder / f"lib{name}.so"
    command = [compiler(), *STRICT, str(HERE / f"{name}.c"), "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return output


class Seen(ctypes.Structure):
    """What ``fakehip.c`` keeps of the last launch, and how often things were called."""

    _fields_ = (
        *((n, ctypes.c_long) for n in ("launches", "allocations", "releases", "written", "set_device")),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("device", ctypes.c_int),
        ("stream", ctypes.c_void_p),
    )


class Fake:
    """A fake runtime for one test."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runtime = Runtime((str(path),))
        self.library = self.runtime.library
        self.library.fake_seen.restype = ctypes.POINTER(Seen)
        self.library.fake_reset()

    @property
    def seen(self) -> Seen:
        return self.library.fake_seen().contents

    def fail(self, name: str, code: int) -> None:
        self.library.fake_fail(name.encode(), code)

    def launcher(self, index: int = 0) -> RocmLauncher:
        return RocmLauncher(DEVICES[index], self.runtime)
