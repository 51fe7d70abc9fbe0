"""Which compiler there is: clang and its linker on the path or in a ROCm installation, else HIPRTC.

Versions are asked once for each program.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tile_core.errors import BackendError, Unsupported

from . import hiprtc
from .hiprtc import Hiprtc, Rejected
from .versions import NEWEST, OLDEST, least

VERSION = re.compile(r"clang version (\d+)(\.[\w.+-]+)?")
LINKER = "ld.lld"


@dataclass(frozen=True, slots=True)
class Clang:
    """A compiler that was found. ``major`` and ``version`` are its version."""

    path: str
    major: int
    version: str

    def knows(self, arch: str) -> bool:
        return self.major >= least(arch)

    def __str__(self) -> str:
        return f"{self.text} ({self.path})"

    @property
    def text(self) -> str:
        return f"clang {self.version}"

    def compiled(self, text: str, suffix: str, options: Sequence[str]) -> tuple[bytes, str]:
        """What it makes of a source, and the log. Raises ``Rejected``: the source does not compile."""
        with tempfile.TemporaryDirectory(prefix="tile-hip-") as folder:
            file, out = Path(folder, f"kernel{suffix}"), Path(folder, "kernel.hsaco")
            file.write_text(text, "utf8")
            command = [self.path, *options, f"--ld-path={self.linker}", str(file), "-o", str(out)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            log = done.stderr.replace(f"{folder}/", "")
            if done.returncode or not out.exists():
                raise Rejected(log)
            return out.read_bytes(), log

    @property
    def linker(self) -> str | None:
        """The lld of the same version: beside it, in the folder that it is a link into, or on the path."""
        real = Path(self.path).resolve().parent
        places = (str(Path(self.path).parent), str(real))
        names = (f"{LINKER}-{self.major}", LINKER)
        return next((p for f in places for n in names if (p := shutil.which(n, path=f))), None) or next(
            (p for n in names if (p := shutil.which(n))), None
        )

    def tool(self, name: str) -> str | None:
        """Another program of the same LLVM, such as ``llvm-objdump``."""
        real = str(Path(self.path).resolve().parent)
        return shutil.which(name, path=real) or shutil.which(f"{name}-{self.major}") or shutil.which(name)


def package(arch: str) -> str:
    """What to install for an architecture."""
    number = max(19, least(arch))
    return f"apt-get install clang-{number} lld-{number}, or newer ones; or install ROCm"


def chosen(arch: str, kind: str = "", path: str = "") -> Clang | Hiprtc:
    """The compiler for ``arch``: of the ``kind`` asked for, else clang, and HIPRTC where no clang will do.

    Raises:
        BackendError: there is none.
        Unsupported: there is no such kind.
    """
    if kind not in ("", "clang", "hiprtc"):
        raise Unsupported(f"no compiler {kind}", help="there are clang and hiprtc")
    if kind == "hiprtc":
        return library(arch)
    try:
        return clang(arch, path)
    except BackendError:
        other = None if kind or path else hiprtc.found()
        if other is None or not other.knows(arch):
            raise
        return other


def library(arch: str) -> Hiprtc:
    """HIPRTC. Raises ``BackendError``: there is none, or it is too old for the architecture."""
    found = hiprtc.found()
    if found is None:
        raise BackendError("HIPRTC is not found", help="install ROCm, or leave the choice to tile")
    if not found.knows(arch):
        raise BackendError(
            f"{found} cannot compile for {arch}",
            why=f"{arch} needs clang {least(arch)} or newer",
            help="install a newer ROCm, or leave the choice to tile",
        )
    return found


def clang(arch: str, path: str = "") -> Clang:
    """The newest clang that compiles for ``arch``, or the one at ``path``.

    Raises:
        BackendError: there is none, it is too old for the architecture, or its linker is missing.
    """
    found = (_at(path),) if path else compilers()
    if path and not shutil.which(path):
        raise BackendError(
            f"there is no clang at {path}", help="give the path of a clang with the AMDGPU target"
        )
    if not found:
        raise BackendError("clang is not found: kernels cannot be compiled", help=package(arch))
    fit = [c for c in found if c.knows(arch)]
    if not fit:
        raise BackendError(
            f"{' and '.join(map(str, found))} cannot compile for {arch}",
            why=f"{arch} needs clang {least(arch)} or newer",
            help=package(arch),
        )
    linked = next((c for c in fit if c.linker), None)
    if linked is None:
        raise BackendError(
            f"{fit[0]} has no linker", why=f"there is no {LINKER} beside it", help=package(arch)
        )
    return linked


def compilers() -> tuple[Clang, ...]:
    """All that are found, newest first; those of ROCm before others of their age."""
    homes = tuple(os.environ.get(name, "") for name in ("ROCM_PATH", "HIP_PATH"))
    return _compilers(os.environ.get("PATH", ""), homes)


@lru_cache(maxsize=8)
def _compilers(search: str, homes: Sequence[str]) -> tuple[Clang, ...]:
    seen: dict[str, Clang] = {}
    for candidate in _candidates(search, homes):
        found = _at(candidate)
        if found.major >= OLDEST:
            seen.setdefault(str(Path(candidate).resolve()), found)
    return tuple(sorted(seen.values(), key=lambda c: -c.major))


def _candidates(search: str, homes: Sequence[str]) -> Iterator[str]:
    for home in (*homes, "/opt/rocm"):
        for folder in ("llvm/bin", "lib/llvm/bin"):
            if home and (found := shutil.which("clang", path=str(Path(home) / folder))):
                yield found
    for name in ("amdclang", *(f"clang-{n}" for n in range(NEWEST, OLDEST - 1, -1)), "clang"):
        if found := shutil.which(name, path=search):
            yield found


@lru_cache(maxsize=32)
def _at(path: str) -> Clang:
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return Clang(path, 0, "unknown")
    found = VERSION.search(done.stdout)
    return Clang(path, int(found[1]), found[1] + (found[2] or "")) if found else Clang(path, 0, "unknown")
