"""ROCm's own compiler library, HIPRTC, by ctypes: HIP C++ text in, a code object out."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from tile_core.errors import BackendError

LIBRARIES = ("libhiprtc.so", "libhiprtc.so.7", "libhiprtc.so.6")
# The first ROCm whose HIPRTC compiles for an architecture: ROCm's release notes.
SINCE = {"gfx90a": (6, 0), "gfx942": (6, 0), "gfx1100": (6, 0), "gfx1201": (6, 4), "gfx950": (7, 0)}
COMPILATION = 6  # HIPRTC_ERROR_COMPILATION of hiprtc.h: the log says what is wrong


class Rejected(Exception):
    """Source that does not compile: the log."""


@dataclass(frozen=True, slots=True)
class Hiprtc:
    """A library that was loaded, and its version."""

    path: str
    version: tuple[int, int]
    library: ctypes.CDLL = field(repr=False, compare=False)

    def knows(self, arch: str) -> bool:
        return self.version >= SINCE.get(arch, (6, 0))

    def __str__(self) -> str:
        return f"hiprtc {self.version[0]}.{self.version[1]} ({self.path})"

    @property
    def text(self) -> str:
        return f"hiprtc {self.version[0]}.{self.version[1]}"

    def compiled(self, text: str, options: Sequence[str]) -> tuple[bytes, str]:
        """A code object and the log.

        Raises:
            Rejected: the source does not compile.
            BackendError: the library fails otherwise.
        """
        program = ctypes.c_void_p()
        self._call("CreateProgram", ctypes.byref(program), text.encode(), b"kernel.hip", 0, None, None)
        try:
            given = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
            code = self._function("CompileProgram")(program, len(options), given)
            log = self._bytes(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
            if code == COMPILATION:
                raise Rejected(log)
            self._check(code, "CompileProgram")
            return self._bytes(program, "Code"), log
        finally:
            self._call("DestroyProgram", ctypes.byref(program))

    def _bytes(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"Get{what}Size", program, ctypes.byref(size))
        data = ctypes.create_string_buffer(size.value)
        if size.value:
            self._call(f"Get{what}", program, data)
        return data.raw

    def _call(self, name: str, *arguments: object) -> None:
        self._check(self._function(name)(*arguments), name)

    def _check(self, code: int, name: str) -> None:
        if code:
            raise BackendError(
                f"hiprtc{name} of {self.path} fails with error {code}", help="install clang, or another ROCm"
            )

    def _function(self, name: str) -> Callable[..., int]:
        return getattr(self.library, f"hiprtc{name}")


def found() -> Hiprtc | None:
    """The one that loads; None without ROCm."""
    return next((h for path in LIBRARIES if (h := loaded(path))), None)


@lru_cache(maxsize=8)
def loaded(path: str) -> Hiprtc | None:
    try:
        library = ctypes.CDLL(path)
    except OSError:
        return None
    major, minor = ctypes.c_int(), ctypes.c_int()
    if library.hiprtcVersion(ctypes.byref(major), ctypes.byref(minor)):
        return None
    return Hiprtc(path, (major.value, minor.value), library)
