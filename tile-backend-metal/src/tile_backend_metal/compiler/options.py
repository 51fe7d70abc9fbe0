"""Options of a target or a compilation, such as ``metal:apple9,language=3.2``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tile_core.errors import Unsupported, did_you_mean
from tile_core.hardware import TargetInfo

OFF = ("", "0", "false", "no", "off")
VERSIONS = ("3.0", "3.1", "3.2", "4.0")
WITH_BFLOAT = VERSIONS[1:]  # MSL 2.1: bfloat is there since 3.1


@dataclass(frozen=True, slots=True)
class Options:
    """``language``: the version of MSL. ``offline``: compile with Apple's toolchain on this Mac, to a metallib."""

    language: str = ""
    offline: bool = False

    @staticmethod
    def of(given: Mapping[str, Any]) -> Options:
        """From names and values, which may be texts. Raises ``Unsupported`` for a name or version that is none."""
        known = tuple(f.name for f in fields(Options))
        for name in given:
            if name not in known:
                raise Unsupported(
                    f"the metal backend has no option {name!r}",
                    help=did_you_mean(name, known) or f"it has: {', '.join(known)}",
                )
        language = str(given.get("language", ""))
        if language and language not in VERSIONS:
            raise Unsupported(f"no version {language} of MSL", help=f"there are {', '.join(VERSIONS)}")
        return Options(language, str(given.get("offline", "")).strip().lower() not in OFF)

    @staticmethod
    def of_target(info: TargetInfo, more: Mapping[str, Any] | None = None) -> Options:
        """Those of a target and of one call; the language is the oldest that has the family's types."""
        found = Options.of({**dict(info.target.options), **(more or {})})
        return Options(
            found.language or ("3.1" if "bfloat16" in info.dtypes else "3.0"),
            found.offline,
        )
