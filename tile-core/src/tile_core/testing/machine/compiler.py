"""The host's C++ compiler: finds it and turns texts into programs, each kept by the hash of all that went into it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from ...errors import TileError
from ...settings import current

FOUND_AS = ("g++", "clang++", "c++")
STANDARD = ("-std=c++17", "-fno-exceptions", "-fno-rtti", "-ffp-contract=off")


class MachineError(TileError):
    """The emulator cannot run this: no compiler, a kernel that is not valid C++ for the host, or a wrong launch."""

    kind = "machine emulator"


def compiler_or_none() -> str | None:
    """Path of ``CXX``, else of the first of g++, clang++ and c++ on the path; None if there is none."""
    wanted = os.environ.get("CXX", "").strip()
    return next((p for name in (wanted, *FOUND_AS) if name and (p := shutil.which(name))), None)


def compiler() -> str:
    """As ``compiler_or_none``, but raises ``MachineError``."""
    path = compiler_or_none()
    if path is None:
        raise MachineError(
            "the machine emulator found no C++ compiler",
            why=f"neither CXX nor {', '.join(FOUND_AS)} names one that is on the path",
            help="install g++ (12 or newer) or clang++, or set CXX",
        )
    return path


@lru_cache(maxsize=4)
def _version(path: str) -> str:
    return subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout.split(
        "\n"
    )[0]


def volatile_apart() -> tuple[str, ...]:
    """The option by which the compiler announces volatile accesses as such."""
    clang = "clang" in _version(compiler())
    return ("-mllvm", "-tsan-distinguish-volatile=1") if clang else ("--param=tsan-distinguish-volatile=1",)


def digest_of(files: Sequence[Path], text: str, flags: Sequence[str]) -> str:
    """A name for what these make: of the contents, not of the paths."""
    digest = hashlib.sha256(_version(compiler()).encode())
    for part in (text, *flags, *(f.name + "\0" + f.read_text("utf8") for f in files)):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:32]


def folder() -> Path:
    """Where programs are kept."""
    path = current().cache_path() / "machine"
    path.mkdir(parents=True, exist_ok=True)
    return path


def build(text: str, flags: Sequence[str], name: str, log_name: str) -> Path:
    """Compile ``text`` to the file ``name`` in the cache, unless it is there. Raises ``MachineError`` with the log."""
    target = folder() / name
    if target.exists():
        return target
    with tempfile.TemporaryDirectory(dir=folder()) as scratch:
        source, out = Path(scratch) / "text.cpp", Path(scratch) / "out"
        source.write_text(text, "utf8")
        command = [compiler(), *STANDARD, *flags, str(source), "-o", str(out), *_libraries(flags)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            shown = "\n".join(done.stderr.replace(str(source), "text.cpp").splitlines()[:40])
            raise MachineError(
                f"{log_name} does not compile for the host:\n{shown}", why=" ".join(command[:-3])
            )
        os.replace(out, target)
    return target


def _libraries(flags: Sequence[str]) -> list[str]:
    # kernels resolve what they call in the program that loads them, which therefore keeps the mathematics library
    return [] if "-shared" in flags else ["-Wl,--no-as-needed", "-lm", "-ldl"]
