"""``tile new-backend``: the package of a backend to begin with."""

from __future__ import annotations

import argparse
from pathlib import Path

from .tables import show


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="lower-case letters and digits, such as mychip")
    parser.add_argument(
        "folder", metavar="DIR", nargs="?", help="where to write it (default: tile-backend-NAME, here)"
    )


def run(options: argparse.Namespace) -> int:
    from ..scaffold import new_backend

    folder = new_backend(options.name, Path(options.folder) if options.folder else None)
    written = sorted(p for p in folder.rglob("*") if p.is_file())
    show([{"file": str(p), "bytes": p.stat().st_size} for p in written], as_json=options.json)
    if not options.json:
        print(f"\nnext: pip install -e {folder} && tile conformance {options.name}")
    return 0
