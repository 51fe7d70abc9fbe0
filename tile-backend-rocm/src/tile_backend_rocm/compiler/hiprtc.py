"""ROCm's own compiler library, HIPRTC, by ctypes: HIP C++ text in, a code object out."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from tile_core.errors import BackendError

from .versions import least

LIBRARIES = ("libhiprtc.so", "libhiprtc.so.7", "libhiprtc.so.6")
COMPILATION = 6  # HIPRTC_ERROR_COMPILATION of hiprtc.h: the log says what is wrong
# hiprtcVersion is 9.0 whatever the version is: the log of a source that is wrong tells it
QUESTION = 'static_assert(__clang_major__ * 10000 + __clang_minor__ * 100 + __clang_patchlevel__ == 0, "");'
ANSWER = re.compile(r"'(\d+) \* 10000 \+ (\d+) \* 100 \+ (\d+) == 0'")


class Rejected(Exception):
    """Source that does not compile: the log."""


@dataclass(frozen=True, slots=True)
class Hiprtc:
    """A library that was loaded."""

    path: str
    library: ctypes.CDLL = field(repr=False, compare=False)

    def knows(self, arch: str) -> bool:
        return self.clang >= (least(arch),)

    def __str__(self) -> str:
        return f"{self.text} ({self.path})"

    @property
    def text(self) -> str:
        return f"hiprtc of clang {'.'.join(map(str, self.clang)) or 'unknown'}"

    @property
    def clang(self) -> tuple[int, ...]:
        """The version of the clang in it; () where it does not tell."""
        return _clang(self)

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
    return Hiprtc(path, library)


@lru_cache(maxsize=8)
def _clang(library: Hiprtc) -> tuple[int, ...]:
    try:
        library.compiled(QUESTION, ("--offload-arch=gfx90a", "-std=c++17"))
    except Rejected as error:
        told = ANSWER.search(str(error))
        return tuple(int(n) for n in told.groups()) if told else ()
    except BackendError:
        pass
    return ()
