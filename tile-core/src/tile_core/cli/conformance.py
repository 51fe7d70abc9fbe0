"""``tile conformance``: the conformance kit, run by pytest on an installed backend."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from ..errors import Unsupported

LEVELS = ("l0", "l1", "l2", "l3", "l4")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("backend", metavar="NAME", help="an installed backend, such as cpu")
    parser.add_argument("--target", metavar="ARCH", help="only this architecture of it")
    parser.add_argument(
        "--level", choices=LEVELS, action="append", default=[], help="only this level; may be repeated"
    )
    parser.add_argument(
        "--record", metavar="FILE", help="append a row for each device that was tested to FILE (devices.toml)"
    )
    parser.add_argument("--xfail", metavar="FILE", help="known failures (conformance_xfail.toml)")
    parser.add_argument(
        "-k", metavar="EXPRESSION", dest="only", help="only the tests that fit, as for pytest"
    )


def run(options: argparse.Namespace) -> int:
    """The exit status of pytest: 0 if nothing failed."""
    from importlib.util import find_spec

    from ..registry import registry

    registry().get(options.backend)  # raises the error that says what to do
    if find_spec("pytest") is None:
        raise Unsupported("the conformance kit needs pytest", help="pip install 'tile-core[testing]'")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        done = subprocess.run(
            [*command(options), f"--junit-xml={report}"],
            stdout=subprocess.DEVNULL if options.json else None,
            check=False,
        )
        if options.json:
            print(json.dumps(rows(report) if report.is_file() else [], indent=2))
    return done.returncode


def command(options: argparse.Namespace) -> list[str]:
    """The call of pytest that takes the tests from the installed kit, and no settings or plugins from where it is called."""
    out = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-ra",
        "-p",
        "tile_core.testing.plugin",
        "-p",
        "no:cacheprovider",
    ]
    out += ["-c", os.devnull, "--rootdir", "."]
    out += ["--pyargs", "tile_core.testing.conformance", "--tile-backend", options.backend]
    given = {"--tile-target": options.target, "--tile-record": options.record, "--tile-xfail": options.xfail}
    out += [part for name, value in given.items() if value for part in (name, value)]
    out += ["-m", " or ".join(options.level)] if options.level else []
    return out + (["-k", options.only] if options.only else [])


def rows(report: Path) -> list[dict[str, Any]]:
    """One row for each test: its name, what came out, and why."""
    out: list[dict[str, Any]] = []
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        told = next((c for c in case if c.tag in ("skipped", "failure", "error")), None)
        state = "passed" if told is None else {"skipped": "skipped"}.get(told.tag, "failed")
        out.append(
            {"test": case.get("name"), "state": state, "why": "" if told is None else told.get("message", "")}
        )
    return out
