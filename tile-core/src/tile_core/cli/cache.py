"""``tile cache``: what is in the cache of compiled kernels, and emptying it."""

from __future__ import annotations

import argparse
import time

from .tables import show


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("info", "list", "clear"), nargs="?", default="info")


def run(options: argparse.Namespace) -> int:
    from ..inference.schedule.answers import Answers
    from ..runtime.cache import LIMIT, Cache

    cache = Cache()
    if options.action == "clear":
        show(
            [{"folder": cache.folder, "removed": cache.clear(), "schedules": Answers.here().clear()}],
            as_json=options.json,
        )
        return 0
    rows = cache.rows()
    if options.action == "list":
        listed = [
            {
                "key": r.key[:16],
                "kernel": r.name or "(damaged)",
                "target": r.target,
                "bytes": r.bytes,
                "used": time.strftime("%Y-%m-%d %H:%M", time.localtime(r.used)),
            }
            for r in rows
        ]
        show(listed, as_json=options.json, title=str(cache.folder))
        return 0
    row = {
        "folder": str(cache.folder),
        "kernels": len(rows),
        "bytes": sum(r.bytes for r in rows),
        "limit": LIMIT,
    }
    show([row], as_json=options.json)
    return 0
