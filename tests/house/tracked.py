"""The files of the checkout that git tracks or would track, and the syntax trees of the product's modules."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
CORE = ROOT / "tile-core" / "src" / "tile_core"
BACKENDS = sorted(p for p in ROOT.glob("tile-backend-*") if p.is_dir())
PACKAGES = [ROOT / "tile-core", *BACKENDS]


@lru_cache(maxsize=1)
def files() -> tuple[Path, ...]:
    """Without the ignored ones; deleted files that are not yet committed are left out."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return tuple(p for n in names if n and (p := ROOT / n).is_file())


def modules(*folders: str) -> Iterator[tuple[Path, ast.Module]]:
    """Python files below folders of the root, parsed."""
    for file in files():
        name = file.relative_to(ROOT).as_posix()
        if file.suffix == ".py" and any(name.startswith(f) for f in folders):
            yield file, ast.parse(file.read_text("utf8"), str(file))


def product() -> Iterator[tuple[Path, ast.Module]]:
    return modules(*(f"{p.name}/src/" for p in PACKAGES))
