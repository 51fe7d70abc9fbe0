"""WGSL text to what the launcher loads: the same text, checked by Tint where that is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tile_core.backend import Artifact, Source
from tile_core.errors import Unsupported
from tile_core.hardware import TargetInfo

CHECKS = ("none", "tint")


class WebgpuCompiler:
    """The driver compiles WGSL when it is loaded, so nothing has to be installed to compile for another machine.

    ``check``: an option of the call or of the target (``webgpu:default,check=tint``): ``tint`` lets Chromium's compiler
    look at the text, as a browser will.
    """

    def __init__(self, info: TargetInfo) -> None:
        self.info = info

    def fingerprint(self) -> str:
        """The version of the language: no other tool has a say in the result."""
        return "wgsl 1"

    def compile(self, source: Source, options: Mapping[str, Any]) -> Artifact:
        """Raises ``InternalError`` where the text does not pass the check."""
        check = str({**dict(self.info.target.options), **options}.get("check", "none"))
        if check not in CHECKS:
            raise Unsupported(f"check={check} is not known", help=f"it is one of {', '.join(CHECKS)}")
        if check == "tint":
            from .tint import refuse

            refuse(source.text, self.info)
        return Artifact("wgsl", source.text.encode(), resources=dict(source.launch.extra["resources"]))
