"""Cubins as SASS text, by nvdisasm or cuobjdump."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from tile_core.errors import BackendError, Unsupported

from .toolkit import program

PROGRAMS = (("nvdisasm", ("-c",)), ("cuobjdump", ("-sass",)))
PACKAGES = "nvidia-cuda-nvdisasm"


def disassemble(cubin: bytes) -> str:
    """The machine code of all kernels.

    Raises:
        Unsupported: no disassembler is installed.
        BackendError: it fails.
    """
    found = next(((path, flags) for name, flags in PROGRAMS if (path := program(name))), None)
    if found is None:
        raise Unsupported("there is no disassembler for cubins here", help=f"pip install {PACKAGES}")
    path, flags = found
    with tempfile.TemporaryDirectory(prefix="tile-sass-") as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(cubin)
        done = subprocess.run([path, *flags, str(file)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BackendError(f"{path} fails: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
