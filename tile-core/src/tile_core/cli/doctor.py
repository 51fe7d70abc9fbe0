"""``tile doctor``: one row for each thing that can be wrong with an installation."""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from .tables import show

if TYPE_CHECKING:
    from ..registry import Status


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("backend", nargs="?", help="only this backend")


def run(options: argparse.Namespace) -> int:
    """Exit status 1 if a check of core, or of the backend that was named, found an error."""
    rows = [] if options.backend else core_rows()
    rows += backend_rows(options.backend)
    show(rows, as_json=options.json, title="tile doctor")
    counted = [r for r in rows if options.backend or r["of"] == "tile-core"]
    return int(any(r["level"] == "error" for r in counted))


# What core computes with; the ranges of versions are in its pyproject.toml.
PACKAGES = ("numpy", "ml_dtypes", "pluggy", "apache-tvm", "apache-tvm-ffi", "llvmlite", "z3-solver")


def core_rows() -> list[dict[str, Any]]:
    found = [_row("tile-core", "python", "ok", sys.version.split()[0])]
    for package in PACKAGES:
        try:
            found.append(_row("tile-core", package, "ok", version(package)))
        except PackageNotFoundError:
            found.append(_row("tile-core", package, "error", "not installed", f"pip install {package}"))
    found.append(_cache_row())
    return found


def _cache_row() -> dict[str, Any]:
    import os

    from .. import settings

    path = settings.current().cache_path()
    at = path
    while not at.exists() and at != at.parent:
        at = at.parent
    if os.access(at, os.W_OK):
        return _row("tile-core", "cache", "ok", str(path))
    return _row("tile-core", "cache", "warning", f"{path} cannot be written", "set TILE_CACHE_DIR")


def backend_rows(only: str | None) -> list[dict[str, Any]]:
    from ..registry import registry

    rows: list[dict[str, Any]] = []
    for status in registry().statuses():
        if only and status.name != only:
            continue
        rows.append(_status_row(status))
        if status.state not in ("ok", "no device"):
            continue
        for check in registry().get(status.name).checks():
            finding = check.run()
            rows.append(_row(status.name, check.name, finding.level, finding.message, finding.remedy))
    if only and not rows:
        registry().get(only)  # raises the error that says what to do
    return rows


LEVEL = {"ok": "ok", "broken": "error", "incompatible": "error"}


def _status_row(status: Status) -> dict[str, Any]:
    level = LEVEL.get(status.state, "info")
    if status.state == "not installed":
        return _row(status.name, "backend", level, status.state, status.detail)
    return _row(status.name, "backend", level, ": ".join(filter(None, (status.state, status.detail))))


def _row(of: str, what: str, level: str, message: str, remedy: str = "") -> dict[str, Any]:
    return {"of": of, "check": what, "level": level, "message": message, "remedy": remedy}
