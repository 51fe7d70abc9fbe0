"""Answers of the solver on disk: one small file each, named by what was asked, in the folder of the cache of compiled kernels.

A file that cannot be read is as good as none. Files are written beside and renamed.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ... import settings
from .model import Body, Dep
from .timing import Timing

FORM = 1  # of the question and of the file: another one has other answers


@dataclass(frozen=True)
class Optimum:
    """``times`` are shorter than those that were given; None: none were found. No interval is below ``lower``, which is proved.

    ``asked``: each interval that the solver was asked for, and its answer.
    """

    times: Timing | None
    lower: int
    asked: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Answers:
    """The answers in one folder; by default beside the compiled kernels that the settings name."""

    folder: Path

    @staticmethod
    def here() -> Answers:
        return Answers(settings.current().cache_path() / "schedules")

    def get(self, key: str) -> Optimum | None:
        try:
            return optimum_of(json.loads(self._path(key).read_text(encoding="utf8")))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, found: Optimum) -> None:
        """Keep an answer; where the folder cannot be written it is found anew next time."""
        path = self._path(key)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
            with os.fdopen(handle, "w", encoding="utf8") as file:
                json.dump(row(found), file)
            os.replace(name, path)

    def clear(self) -> int:
        """Remove all answers; gives how many there were."""
        found = list(self.folder.glob("*/*.json"))
        for path in found:
            path.unlink(missing_ok=True)
        return len(found)

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"


def asked(body: Body, deps: Sequence[Dep], times: Timing, rlimit: int) -> str:
    """The key of a question: all that its answer depends on."""
    plain = replace(body, storage=tuple(replace(s, buffer=None) for s in body.storage))
    what = (FORM, version("z3-solver"), plain, tuple(deps), times, rlimit)
    return hashlib.sha256(repr(what).encode()).hexdigest()


def row(found: Optimum) -> dict[str, Any]:
    """An answer as JSON has it."""
    t = found.times
    times = None if t is None else [t.interval, dict(t.issue), dict(t.start), dict(t.depth), t.bound]
    return {"times": times, "lower": found.lower, "asked": found.asked}


def optimum_of(row: dict[str, Any]) -> Optimum:
    """The answer of a row. Raises ``KeyError``, ``TypeError`` or ``ValueError`` for any other value."""
    times = None if row["times"] is None else Timing(*row["times"])
    return Optimum(times, int(row["lower"]), tuple((int(n), str(v)) for n, v in row["asked"]))
