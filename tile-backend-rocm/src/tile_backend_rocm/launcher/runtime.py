"""The HIP runtime through ctypes: functions by name, the current device, errors in words."""

from __future__ import annotations

import ctypes
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from tile_core.errors import BackendError, NoDevice, TileError

from ..probe import RUNTIMES

# hipError_t of hip_runtime_api.h: what to do
REMEDIES = {
    2: "free memory of the device, or use smaller tensors",
    100: "see HIP_VISIBLE_DEVICES and `tile doctor`",
    101: "see HIP_VISIBLE_DEVICES and `tile devices`",
    200: "clear the cache with `tile cache clear`, or export the bundle again",
    209: "compile it for this device: `tile devices` names its target",
    700: "run the kernel in the interpreter, which checks each access",
    701: "use smaller tiles",
    719: "run the kernel in the interpreter, which checks each access",
    900: "call the kernel once before the capture",
}
NO_DEVICE = (100, 101)


class Runtime:
    """One loaded HIP runtime. Threads may share it.

    Raises:
        BackendError: it does not load, or does not know a function.
        NoDevice: it sees no device.
    """

    def __init__(self, paths: Sequence[str] = RUNTIMES) -> None:
        self.library = _loaded(paths)
        self("hipInit", 0)

    def __call__(self, name: str, *arguments: Any) -> None:
        """Call a function. Raises ``BackendError`` that says what its error means."""
        try:
            function = getattr(self.library, name)
        except AttributeError as error:
            raise BackendError(f"the HIP runtime has no {name}", help="install a newer ROCm") from error
        code = function(*arguments)
        if code:
            raise self._failure(code, name)

    def _failure(self, code: int, name: str) -> TileError:
        kind = NoDevice if code in NO_DEVICE else BackendError
        return kind(f"{name}: {self._meaning(code)} (HIP error {code})", help=REMEDIES.get(code, ""))

    def _meaning(self, code: int) -> str:
        text = getattr(self.library, "hipGetErrorString", None)
        if text is None:
            return "an error"
        text.restype = ctypes.c_char_p
        found: bytes | None = text(code)
        return (found or b"an error").decode(errors="replace")

    @contextmanager
    def current(self, index: int) -> Generator[None, None, None]:
        """A device is the thread's current one inside a ``with`` block."""
        before = ctypes.c_int()
        self("hipGetDevice", ctypes.byref(before))
        if before.value == index:
            yield
            return
        self("hipSetDevice", index)
        try:
            yield
        finally:
            self("hipSetDevice", before.value)


def _loaded(paths: Sequence[str]) -> ctypes.CDLL:
    reasons: list[str] = []
    for path in paths:
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            reasons.append(str(error))
    raise BackendError(
        "the HIP runtime does not load",
        why="; ".join(reasons),
        help="install ROCm, or put its lib folder on LD_LIBRARY_PATH; kernels can be compiled and exported without it",
    )


@lru_cache(maxsize=1)
def runtime() -> Runtime:
    """The HIP runtime of this process. Raises ``BackendError`` where there is none."""
    return Runtime()
