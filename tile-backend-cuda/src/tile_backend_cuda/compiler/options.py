"""Options of a compilation: those of the target, such as ``cuda:sm_90a,fast_math=1``, and those of one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tile_core.errors import Unsupported, did_you_mean

OFF = ("", "0", "false", "no", "off")


@dataclass(frozen=True, slots=True)
class Options:
    """``strict``: findings are errors. ``fast_math``: approximate functions and flushed denormals. ``line_info``: for profilers.

    ``pdl``: launches begin while the one before still runs (programmatic dependent launch); an option of the target alone.
    ``compiler``: ``nvrtc``, ``nvcc``, or the path of an nvcc. ``nvrtc``: the path of the library, "" for the one that is found.
    """

    strict: bool = False
    fast_math: bool = False
    line_info: bool = False
    pdl: bool = False
    compiler: str = "nvrtc"
    nvrtc: str = ""

    @staticmethod
    def of(given: Mapping[str, Any]) -> Options:
        """From names and values, which may be texts. Raises ``Unsupported`` for a name that is none."""
        kinds: dict[str, type[object]] = {f.name: type(f.default) for f in fields(Options)}
        for name in given:
            if name not in kinds:
                raise Unsupported(
                    f"the cuda backend has no option {name!r}",
                    help=did_you_mean(name, kinds) or f"it has: {', '.join(kinds)}",
                )
        values: dict[str, Any] = {n: _flag(v) if kinds[n] is bool else str(v) for n, v in given.items()}
        return Options(**values)


def _flag(value: Any) -> bool:
    return value.strip().lower() not in OFF if isinstance(value, str) else bool(value)
