"""``tile verify``: what must hold of a kernel's plan, and whether it was proved."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from .options import kernel
from .tables import show


def arguments(parser: argparse.ArgumentParser) -> None:
    kernel(parser)
    parser.add_argument(
        "--certificates",
        type=Path,
        metavar="FOLDER",
        help="write each question to the solver and its answer, as SMT-LIB 2",
    )


def run(options: argparse.Namespace) -> int:
    """Exit status 1 if anything failed; what is not proved is said so."""
    from ..runtime.pipeline import emitted
    from ..verification.certificates import Certificates
    from ..verification.plans import FAILED, verified
    from .loading import load

    found = load(options)
    kept = None if options.certificates is None else Certificates(options.certificates)
    rows = verified(found.plan, kept, emitted(found.plan, found.backend))
    shown = [{**asdict(r), "ms": f"{r.ms:.1f}"} for r in rows]
    for row in () if options.json else shown:
        del row["example"]
    show(shown, as_json=options.json, title=f"{found.name} for {found.target}")
    if not options.json:
        for r in rows:
            print(f"\n{r.what}, {r.of}: {r.status}\n{r.example}" if r.example else "", end="")
        print(f"\n{len(rows)} obligations in {sum(r.ms for r in rows):.0f} ms")
        if kept is not None:
            print(f"{len(kept.names)} certificates in {kept.folder}")
    return int(any(r.status == FAILED for r in rows))
