"""The compiler role: MSL checked by the rules of ``lint``, as text for the launcher; by option through Apple's toolchain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tile_core.backend import Artifact, Source
from tile_core.errors import InternalError
from tile_core.hardware import TargetInfo

from . import toolchain
from .lint import faults
from .options import Options


class MetalCompiler:
    """Metal compiles on the device's own machine, when a kernel is loaded; here the text is looked at."""

    def __init__(self, info: TargetInfo) -> None:
        self.info = info

    def compile(self, source: Source, options: Mapping[str, Any]) -> Artifact:
        """An artifact of kind ``msl`` (the text), or with ``offline=1`` of kind ``metallib``.

        Raises:
            InternalError: the generated text breaks a rule of MSL, or Apple's compiler rejects it.
            BackendError: ``offline`` is asked for where there is no toolchain.
        """
        if source.language != "metal":
            raise InternalError(f"the Metal compiler compiles metal, this is {source.language}")
        chosen = Options.of_target(self.info, options)
        found = faults(source.text, chosen.language)
        if found:
            raise InternalError(
                "the generated source breaks rules of MSL:\n" + "\n".join(map(str, found[:20])),
                why="this is a fault of tile, not of the kernel",
                help="please report it with the kernel",
            )
        if chosen.offline:
            made = toolchain.compile(source.text, chosen.language)
            return Artifact("metallib", made.library, made.log, _resources(source))
        return Artifact("msl", source.text.encode("ascii"), "", _resources(source))

    def fingerprint(self) -> str:
        """The version of the language, and with ``offline`` that of the toolchain."""
        chosen = Options.of_target(self.info)
        return f"msl {chosen.language}" + (f", {toolchain.version()}" if chosen.offline else "")


def _resources(source: Source) -> dict[str, int]:
    """The most of any of its kernels."""
    threads = [math.prod(threads) for _, _, threads in source.launch.entries]
    return {
        "shared": max(source.launch.extra["shared"].values(), default=0),
        "threads": max(threads, default=0),
    }
