"""Where clang and its linker are: on the path, or in a ROCm installation. Versions are asked once for each program."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tile_core.errors import BackendError

# The first major version of clang with an architecture, and the oldest one that is looked for: LLVM's release notes, AMDGPU.
SINCE = {"gfx90a": 17, "gfx942": 17, "gfx1100": 17, "gfx1201": 19, "gfx950": 20}
OLDEST, NEWEST = 17, 30
VERSION = re.compile(r"clang version (\d+)(\.[\w.+-]+)?")
LINKER = "ld.lld"


@dataclass(frozen=True, slots=True)
class Clang:
    """A compiler that was found. ``major`` and ``text`` are its version."""

    path: str
    major: int
    text: str

    def knows(self, arch: str) -> bool:
        return self.major >= SINCE.get(arch, OLDEST)

    def __str__(self) -> str:
        return f"clang {self.text} ({self.path})"

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
    number = max(19, SINCE.get(arch, OLDEST))
    return f"apt-get install clang-{number} lld-{number}, or newer ones; or install ROCm"


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
            why=f"{arch} needs clang {SINCE.get(arch, OLDEST)} or newer",
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
