"""Make the folder that a comparison runs from on a machine with a GPU: wheels, and one bundle for each row and variant."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "device"))

from packed import wheels

Made = tuple[str, str, Any]  # row, variant, and what gives the kernel


def script(about: str | None, kernels: Iterable[Made]) -> None:
    """Read the command line and do what it says. Kernels are compiled only for rows that are asked for."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--no-wheels", action="store_true")
    given = parser.parse_args()
    if not given.no_wheels:
        wheels(given.folder)
    for row, variant, make in kernels:
        if given.only in row:
            make().export(given.folder / "bundles" / f"{row}.{variant}")
