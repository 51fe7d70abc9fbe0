"""Show rows as a table (rich, plain when there is no terminal) or as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any


def show(rows: Sequence[Mapping[str, Any]], *, as_json: bool, title: str = "") -> None:
    """Print rows with equal keys. With ``as_json`` a list of objects, nothing else."""
    if as_json:
        print(json.dumps(list(rows), indent=2, default=str))
        return
    if not rows:
        print(f"{title}: none" if title else "none")
        return
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        table = Table(title=title or None)
        for key in rows[0]:
            table.add_column(key)
        for row in rows:
            table.add_row(*(_cell(v) for v in row.values()))
        Console().print(table)
        return
    widths = {k: max(len(k), *(len(_cell(r[k])) for r in rows)) for k in rows[0]}
    print("  ".join(k.ljust(w) for k, w in widths.items()).rstrip())
    for row in rows:
        print("  ".join(_cell(row[k]).ljust(w) for k, w in widths.items()).rstrip())


def _cell(value: Any) -> str:
    match value:
        case [*items]:
            return ", ".join(map(str, items))
        case _:
            return str(value)
