"""``tile devices``: the hardware that is here now."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from .tables import show


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("backend", nargs="?", help="only this backend")


def run(options: argparse.Namespace) -> int:
    from ..registry import registry

    rows: list[dict[str, Any]] = []
    for backend in registry().usable():
        if options.backend not in (None, backend.name):
            continue
        for device in backend.devices():
            rows.append({**asdict(device), "target": str(device.target)})
    show(rows, as_json=options.json, title="devices")
    return 0
