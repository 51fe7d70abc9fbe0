"""``tile export``: a kernel, compiled, as a folder for machines without a compiler."""

from __future__ import annotations

import argparse

from .options import kernel
from .tables import show


def arguments(parser: argparse.ArgumentParser) -> None:
    kernel(parser)
    parser.add_argument("folder", metavar="DIR", help="the folder to write, made if it is not there")


def run(options: argparse.Namespace) -> int:
    from .loading import load

    found = load(options)
    folder = found.export(options.folder)
    rows = [
        {"file": str(path), "bytes": path.stat().st_size}
        for path in sorted(folder.iterdir())
        if path.is_file()
    ]
    show(rows, as_json=options.json, title=f"{found.name} for {found.target}")
    return 0
