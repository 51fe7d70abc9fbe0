"""``tile targets``: every backend with its architectures; a sick one gets a row too."""

from __future__ import annotations

import argparse
from typing import Any

from .tables import show


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("backend", nargs="?", help="only this backend")


def run(options: argparse.Namespace) -> int:
    """Always exit status 0: a broken backend is shown, not fatal."""
    from ..registry import registry

    rows: list[dict[str, Any]] = []
    for s in registry().statuses():
        if options.backend in (None, s.name):
            rows.append(
                {
                    "backend": s.name,
                    "state": s.state,
                    "targets": [t.partition(":")[2] for t in s.targets],
                    "package": s.distribution,
                    "detail": s.detail,
                }
            )
    show(rows, as_json=options.json, title="targets")
    return 0
