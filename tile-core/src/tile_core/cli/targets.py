"""``tile targets``: every backend with its architectures; a sick one gets a row too."""

from __future__ import annotations

import argparse

from .tables import show


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("backend", nargs="?", help="only this backend")


def run(options: argparse.Namespace) -> int:
    """A broken backend is shown, not fatal. Raises ``BackendNotFound`` for one that nobody knows."""
    from ..registry import registry

    rows = [
        {
            "backend": s.name,
            "state": s.state,
            "targets": [t.partition(":")[2] for t in s.targets],
            "package": s.distribution,
            "detail": s.detail,
        }
        for s in registry().statuses()
        if options.backend in (None, s.name)
    ]
    if options.backend and not rows:
        registry().get(options.backend)
    show(rows, as_json=options.json, title="targets")
    return 0
