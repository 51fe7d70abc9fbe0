"""The fake driver and the native launcher, compiled, and what the fake one has seen."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
import sysconfig
from pathlib import Path
from types import ModuleType

from tile_backend_cuda.launcher import CudaLauncher
from tile_backend_cuda.launcher.driver import Driver
from tile_core.hardware import Device, Target

HERE = Path(__file__).parent
ROOM = HERE.parents[1] / "src" / "tile_backend_cuda" / "launcher" / "sources"
COMPILER = next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)
STRICT = ("-O1", "-g", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")
CPU = 1  # kDLCPU: host tensors stand in for those of a device
DEVICES = tuple(Device(Target("cuda", "sm_90a"), n, f"Fake {n}") for n in range(2))
CONTEXT = 0x1000


def compiled(source: Path, output: Path, *flags: str) -> Path:
    command = [COMPILER or "cc", *STRICT, *flags, str(source), "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return output


def extension(folder: Path) -> ModuleType:
    """The native launcher from its sources, warnings being errors."""
    include = f"-I{sysconfig.get_path('include')}"
    file = compiled(ROOM / "launch.c", folder / "_launch.so", include, "-Wno-missing-field-initializers")
    spec = importlib.util.spec_from_file_location("_launch", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Seen(ctypes.Structure):
    """What ``fakecuda.c`` keeps of the last launch, and how often things were called."""

    _fields_ = (
        *(
            (name, ctypes.c_long)
            for name in ("launches", "encodes", "allocations", "releases", "contexts_set")
        ),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("attributes", (ctypes.c_int * 4) * 3),
        ("count", ctypes.c_uint),
    )


class Fake:
    """A fake driver for one test."""

    def __init__(self, library: Path, native: ModuleType) -> None:
        self.driver = Driver(str(library))
        self.native = native
        self.library = self.driver.library
        self.library.fake_seen.restype = ctypes.POINTER(Seen)
        self.library.fake_reset()

    @property
    def seen(self) -> Seen:
        return self.library.fake_seen().contents

    def fail(self, name: str, code: int) -> None:
        self.library.fake_fail(name.encode(), code)

    def launcher(self, how: str, index: int = 0) -> CudaLauncher:
        """``how``: native or portable."""
        device = DEVICES[index]
        return CudaLauncher(device, self.driver, self.native, portable=how == "portable", device_type=CPU)
