"""``tile devices``: the hardware that is here now."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from .tables import show


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("backend", nargs="?", help="only this backend")


def run(options: argparse.Namespace) -> int:
    from ..registry import registry

    known = registry()
    backends = [known.get(options.backend)] if options.backend else known.usable()
    rows = [{**asdict(d), "target": str(d.target)} for backend in backends for d in backend.devices()]
    show(rows, as_json=options.json, title="devices")
    return 0
