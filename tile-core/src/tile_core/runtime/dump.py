"""The stages that ``TILE_DUMP`` names, written to one numbered folder for each compilation."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from .. import settings

T = TypeVar("T")


@dataclass
class Dump:
    """Files of one compilation. The folder is made, and printed, with the first stage."""

    name: str
    stages: frozenset[str]
    folder: Path | None = None
    count: int = 0

    @staticmethod
    def wanted(name: str) -> Dump:
        return Dump(name, settings.current().dumped)

    def write(self, stage: str, value: T, show: Callable[[T], str]) -> None:
        """Write a stage if it is wanted."""
        if stage not in self.stages:
            return
        if self.folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix=f"tile-{self.name}-"))
            print(f"tile: stages of {self.name} are in {self.folder}")
        (self.folder / f"{self.count:02d}_{stage}.txt").write_text(show(value), encoding="utf8")
        self.count += 1
