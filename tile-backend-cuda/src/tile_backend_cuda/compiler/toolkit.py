"""Where NVRTC and the disassemblers are: in NVIDIA's wheels (torch brings them too), in a CUDA installation, or on the path.

Nothing is loaded here; versions are read from file names and metadata.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tile_core.errors import BackendError, Unsupported

Version = tuple[int, ...]

# Release notes of the CUDA toolkit: the first version that compiles for an architecture, and the first that does no longer.
SINCE: dict[str, Version] = {
    "sm_89": (11, 8),
    "sm_90a": (12, 0),
    "sm_100a": (12, 8),
    "sm_103a": (12, 9),
    "sm_120a": (12, 8),
}
UNTIL: dict[str, Version] = {"sm_70": (13, 0)}

NEWEST = "nvidia-cuda-nvrtc"
OLDER = "nvidia-cuda-nvrtc-cu12"
SONAMES = ("libnvrtc.so.13", "libnvrtc.so.12")
NUMBER = re.compile(r"(\d+(?:\.\d+)+)$")


@dataclass(frozen=True, slots=True)
class Library:
    """An NVRTC that was found. ``version`` is () where only the loaded library can say it."""

    path: str
    version: Version = ()

    def fits(self, arch: str) -> bool:
        """Whether it compiles for an architecture, as far as the version is known."""
        if not self.version:
            return True
        return SINCE.get(arch, (0,)) <= self.version and not (arch in UNTIL and UNTIL[arch] <= self.version)

    def __str__(self) -> str:
        return f"NVRTC {dotted(self.version)}" if self.version else f"NVRTC in {self.path}"


def dotted(version: Version) -> str:
    return ".".join(map(str, version))


def library(arch: str, path: str = "") -> Library:
    """The NVRTC to compile with, or the one at ``path``.

    Raises:
        BackendError: there is none.
        Unsupported: those that are there do not compile for ``arch``.
    """
    if path:
        if not Path(path).is_file():
            raise BackendError(f"there is no NVRTC at {path}", help="give the path of a libnvrtc.so")
        return Library(path, _version_of(Path(path)))
    found = libraries()
    package = OLDER if arch in UNTIL else NEWEST
    if not found:
        raise BackendError(
            "NVRTC is not found: kernels cannot be compiled",
            help=f"pip install {package}; torch for CUDA brings it too, and so does a CUDA toolkit (CUDA_HOME)",
        )
    for candidate in found:
        if candidate.fits(arch):
            return candidate
    raise unsupported(arch, found)


def unsupported(arch: str, found: Sequence[Library]) -> Unsupported:
    """The error where no library compiles for an architecture: names what would."""
    package = OLDER if arch in UNTIL else NEWEST
    since = f" of CUDA {dotted(SINCE[arch])} or newer" if arch in SINCE else ""
    until = f" before CUDA {dotted(UNTIL[arch])}" if arch in UNTIL else ""
    return Unsupported(
        f"{' and '.join(map(str, found))} cannot compile for {arch}",
        why=f"{arch} needs an NVRTC{since}{until}",
        help=f"pip install --upgrade {package}",
    )


def libraries() -> tuple[Library, ...]:
    """All that are found, the preferred first."""
    homes = tuple(os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH"))
    return _libraries(tuple(sys.path), homes)


@lru_cache(maxsize=8)
def _libraries(folders: tuple[str, ...], homes: tuple[str, ...]) -> tuple[Library, ...]:
    places = [*_wheel_folders(folders, "lib"), *_home_folders(homes, ("lib64", "lib"))]
    seen: dict[Path, Library] = {}
    for folder in places:
        # newest first; libnvrtc.alt.so is a variant for old distributions
        for file in sorted(folder.glob("libnvrtc.so.[0-9]*"), key=lambda f: f.name, reverse=True):
            seen.setdefault(file.resolve(), Library(str(file), _version_of(file)))
    return tuple(seen.values()) or tuple(Library(name) for name in SONAMES if _loads(name))


def _wheel_folders(folders: Sequence[str], kind: str) -> Iterator[Path]:
    """NVIDIA's wheels of CUDA 13 share one folder, those before have one each."""
    for folder in folders:
        for package in ("cu13", "cuda_nvrtc", "cuda_nvcc"):
            if (found := Path(folder or ".") / "nvidia" / package / kind).is_dir():
                yield found


def _home_folders(homes: Sequence[str], kinds: Sequence[str]) -> Iterator[Path]:
    for home in (*homes, "/usr/local/cuda"):
        for kind in kinds:
            if home and (found := Path(home) / kind).is_dir():
                yield found


def _version_of(file: Path) -> Version:
    """From the metadata of the wheel it came in, else from the name that it really has."""
    for site in file.parents:
        if site.name == "nvidia":
            for info in site.parent.glob("nvidia_cuda_nvrtc*.dist-info"):
                major = file.name.rpartition(".so.")[2].partition(".")[0]
                version = info.name.removesuffix(".dist-info").rpartition("-")[2]
                if version.partition(".")[0] == major:
                    return tuple(int(n) for n in version.split(".") if n.isdigit())
    number = NUMBER.search(file.resolve().name.rpartition(".so.")[2])
    return tuple(map(int, number[1].split("."))) if number else ()


def _loads(soname: str) -> bool:
    import ctypes

    try:
        ctypes.CDLL(soname)
    except OSError:
        return False
    return True


def program(name: str) -> str | None:
    """The path of a program of the toolkit: from wheels, a CUDA installation, the path, or triton's own copy."""
    homes = [os.environ.get(n, "") for n in ("CUDA_HOME", "CUDA_PATH")]
    places = [*_wheel_folders(sys.path, "bin"), *_home_folders(homes, ("bin",))]
    found = next((str(p / name) for p in places if os.access(p / name, os.X_OK)), None)
    return found or shutil.which(name) or _tritons(name)


def _tritons(name: str) -> str | None:
    for folder in sys.path:
        file = Path(folder or ".") / "triton" / "backends" / "nvidia" / "bin" / name
        if os.access(file, os.X_OK):
            return str(file)
    return None
