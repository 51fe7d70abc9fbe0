"""nvcc as a program: text and options to a cubin and the log."""

from __future__ import annotations

import re
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from tile_core.errors import BackendError

from .nvrtc import Compiled
from .toolkit import program

RELEASE = re.compile(r"\bV(\d+(?:\.\d+)+)")


def path(wanted: str) -> str:
    """The nvcc that the option ``compiler`` names. Raises ``BackendError`` if it is not there."""
    found = program("nvcc") if wanted == "nvcc" else wanted
    if not found or not Path(found).is_file():
        raise BackendError(
            f"there is no nvcc{'' if wanted == 'nvcc' else ' at ' + wanted}",
            help="install the CUDA toolkit and set CUDA_HOME, or leave out the option: NVRTC needs no toolkit",
        )
    return found


@lru_cache(maxsize=4)
def version(nvcc: str) -> str:
    """Asked once for each process. Raises ``BackendError`` if the program does not answer."""
    try:
        said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise BackendError(f"{nvcc} --version fails: {error}") from error
    number = RELEASE.search(said)
    return number[1] if number else said.strip()


def compile(nvcc: str, text: str, options: list[str]) -> Compiled:
    """The cubin is empty where the source, or an option, was rejected."""
    with tempfile.TemporaryDirectory(prefix="tile-nvcc-") as folder:
        source, cubin = Path(folder, "kernel.cu"), Path(folder, "kernel.cubin")
        source.write_text(text, encoding="utf8")
        command = [nvcc, "-cubin", *options, str(source), "-o", str(cubin)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        log = done.stdout + done.stderr
        return Compiled(cubin.read_bytes() if done.returncode == 0 else b"", log)
