"""NVRTC through ctypes: text and options to a cubin and the log. Threads may compile at the same time."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tile_core.errors import BackendError

from .toolkit import Library, Version

COMPILATION_FAILED = 6  # nvrtc.h: NVRTC_ERROR_COMPILATION


@dataclass(frozen=True, slots=True)
class Compiled:
    """A cubin, empty where the source was rejected, and what the compiler said."""

    cubin: bytes
    log: str


class Nvrtc:
    """One loaded NVRTC. Raises ``BackendError`` if it does not load."""

    def __init__(self, path: str) -> None:
        try:
            # found by its soname only on the loader's path, so it is loaded first
            for builtins in Path(path).parent.glob("libnvrtc-builtins.so.*"):
                if ".alt." not in builtins.name:
                    ctypes.CDLL(str(builtins), ctypes.RTLD_GLOBAL)
            self.library = ctypes.CDLL(path)
        except OSError as error:
            raise BackendError(f"NVRTC does not load: {error}", help="install nvidia-cuda-nvrtc") from error

    @property
    def version(self) -> Version:
        major, minor = ctypes.c_int(), ctypes.c_int()
        self("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def architectures(self) -> tuple[int, ...]:
        """Numbers of those it compiles for, such as 90 for sm_90a."""
        count = ctypes.c_int()
        self("nvrtcGetNumSupportedArchs", ctypes.byref(count))
        found = (ctypes.c_int * count.value)()
        self("nvrtcGetSupportedArchs", found)
        return tuple(found)

    def compile(self, text: str, name: str, options: list[str]) -> Compiled:
        """Raises ``BackendError`` if NVRTC fails for another reason than the source."""
        program = ctypes.c_void_p()
        self("nvrtcCreateProgram", ctypes.byref(program), text.encode(), name.encode(), 0, None, None)
        try:
            given = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
            error = self.library.nvrtcCompileProgram(program, len(options), given)
            log = self._bytes("ProgramLog", program).rstrip(b"\0").decode(errors="replace")
            if error == COMPILATION_FAILED:
                return Compiled(b"", log)
            if error:
                raise self._failure(error, f"nvrtcCompileProgram({' '.join(options)}): {log.strip()}")
            return Compiled(self._bytes("CUBIN", program), log)
        finally:
            self("nvrtcDestroyProgram", ctypes.byref(program))

    def _bytes(self, what: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        self(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        out = ctypes.create_string_buffer(size.value)
        self(f"nvrtcGet{what}", program, out)
        return out.raw

    def __call__(self, name: str, *arguments: Any) -> None:
        error = getattr(self.library, name)(*arguments)
        if error:
            raise self._failure(error, name)

    def _failure(self, error: int, what: str) -> BackendError:
        text = self.library.nvrtcGetErrorString
        text.restype = ctypes.c_char_p
        return BackendError(f"{what}: {text(error).decode()}")


@lru_cache(maxsize=4)
def loaded(library: Library) -> Nvrtc:
    """The library, loaded once for each process."""
    return Nvrtc(library.path)
