"""Apple's offline compiler through ``xcrun``: MSL in, a metallib out. macOS with Xcode's Metal toolchain only."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tile_core.errors import BackendError, InternalError

REMEDY = "install Xcode and its Metal toolchain (xcodebuild -downloadComponent MetalToolchain), or leave out offline=1"


@dataclass(frozen=True, slots=True)
class Compiled:
    library: bytes
    log: str


def _xcrun() -> str:
    found = shutil.which("xcrun")
    if found is None:
        raise BackendError("there is no xcrun to compile MSL with", help=REMEDY)
    return found


def compile(text: str, language: str) -> Compiled:
    """Compile without fast math. Raises ``BackendError``: no toolchain; ``InternalError``: it rejects the text."""
    xcrun = _xcrun()
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "kernel.metal", Path(folder) / "kernel.metallib"
        source.write_text(text, "ascii")
        # 1.6.3 and 1.6.10 of the specification
        command = [xcrun, "-sdk", "macosx", "metal", f"-std=metal{language}", "-fno-fast-math", str(source)]
        done = subprocess.run([*command, "-o", str(out)], capture_output=True, text=True, check=False)
        if done.returncode:
            log = done.stderr.replace(str(source), "kernel.metal").strip()
            if "unable to find utility" in log or "missing Metal Toolchain" in log:
                raise BackendError(f"xcrun finds no Metal compiler: {log}", help=REMEDY)
            raise InternalError(
                f"Apple's compiler rejects the generated code:\n{log}",
                why="this is a fault of tile, not of the kernel",
                help="please report it with the kernel",
            )
        return Compiled(out.read_bytes(), done.stderr)


@lru_cache(maxsize=1)
def version() -> str:
    """The first line that the compiler says of itself, or that there is none."""
    xcrun = shutil.which("xcrun")
    if xcrun is None:
        return "no xcrun"
    done = subprocess.run(
        [xcrun, "-sdk", "macosx", "metal", "--version"], capture_output=True, text=True, check=False
    )
    return (done.stdout or done.stderr).partition("\n")[0] or "no metal compiler"
