"""A comparison on a machine with a GPU, as a script: rows are measured one after the other, printed, summed up and kept."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import timing
from soundness import Unsound

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "device"))

from packed import unpacked


class Named(Protocol):
    """A row of a comparison."""

    @property
    def name(self) -> str: ...


R = TypeVar("R", bound=Named)
Result = dict[str, Any]
Measure = Callable[[Any, Any, Path, R, timing.Protocol], Result]  # torch, tile, the folder of bundles


def script(
    about: str | None,
    rows: Sequence[R],
    measure: Measure[R],
    shown: Callable[[R, Result], str],
    summary: Callable[[list[tuple[R, Result]]], Any],
    rounds: int = 6,
) -> None:
    """Read the command line and do what it says. The folder that it names holds bundles, and wheels of what runs them."""
    given = _given(about, rounds)
    sys.path.insert(0, str(unpacked(given.folder)))
    import torch

    import tile_core as tile

    protocol = timing.Protocol(rounds=given.rounds)
    results: list[tuple[R, Result]] = []
    unsound: list[str] = []
    for row in rows:
        if given.only not in row.name:
            continue
        try:
            results.append((row, measure(torch, tile, given.folder, row, protocol)))
            print(shown(*results[-1]), flush=True)
        except Unsound as found:
            unsound.append(str(found))
            print("UNSOUND", found, flush=True)
    table = summary(results)
    print(json.dumps(table, indent=1))
    if given.json:
        about = {**_machine(torch, protocol), **({"unsound": unsound} if unsound else {})}
        found = {"about": about, "summary": table, "rows": [r for _, r in results]}
        given.json.write_text(json.dumps(found, indent=1), encoding="utf8")
    if unsound:
        raise SystemExit(1)


def _given(about: str | None, rounds: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--rounds", type=int, default=rounds)
    return parser.parse_args()


def _machine(torch: Any, protocol: timing.Protocol) -> Result:
    return {
        "command": " ".join(sys.argv),
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "python": platform.python_version(),
        "protocol": str(protocol),
    }
