"""Numbered cases in child processes: one that hangs or breaks the device's context is reported, the rest goes on in a fresh one."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

Case = tuple[str, Callable[[], str]]


def between(text: str) -> range:
    """``A:B`` as a range."""
    first, _, end = text.partition(":")
    return range(int(first), int(end))


def add_range(parser: argparse.ArgumentParser) -> None:
    """The option by which ``supervise`` tells a child which cases are its."""
    parser.add_argument("--range", type=between, metavar="A:B", help=argparse.SUPPRESS)


def perform(cases: Sequence[Case], numbers: range) -> int:
    """The child's side: runs cases, each gives what is wrong or "". After an exception the process is not trusted any more."""
    for i in numbers:
        name, run = cases[i]
        print(json.dumps({"begins": i}), flush=True)
        try:
            problem, trusted = run(), True
        except Exception as error:
            problem, trusted = f"{type(error).__name__}: {str(error)[:2000]}", False
        print(json.dumps({"case": name, "number": i, "problem": problem}), flush=True)
        if not trusted:
            return 1
    return 0


def supervise(command: Sequence[str], numbers: range, seconds: float) -> list[dict[str, Any]]:
    """Rows of all cases, in as many processes as breaks need. ``seconds``: how long one case may take."""
    results: list[dict[str, Any]] = []
    at = numbers.start
    while at < numbers.stop:
        arguments = [sys.executable, *command, "--range", f"{at}:{numbers.stop}"]
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        begun = _watch(process, results, seconds)
        if begun is None:
            results.append({"case": "the process", "number": at, "problem": "no case could begin"})
            print(json.dumps(results[-1]), flush=True)
            break
        at = begun + 1
    return results


def _watch(process: subprocess.Popen[str], results: list[dict[str, Any]], seconds: float) -> int | None:
    """Reads a child's lines until it ends or hangs; the number of the last case that began."""
    timer = threading.Timer(seconds, process.kill)
    begun: int | None = None
    assert process.stdout is not None
    for line in process.stdout:
        if not line.startswith("{"):
            print(line, end="", flush=True)
            continue
        row = json.loads(line)
        timer.cancel()
        if "begins" in row:
            begun = row["begins"]
            timer = threading.Timer(seconds, process.kill)
            timer.start()
            continue
        print(json.dumps(row), flush=True)
        results.append(row)
    process.wait()
    timer.cancel()
    if begun is not None and (not results or results[-1]["number"] < begun):
        told = f"hangs or crashes (code {process.returncode})"
        results.append({"case": f"number {begun}", "number": begun, "problem": told})
        print(json.dumps(results[-1]), flush=True)
    return begun


def summary(results: Sequence[dict[str, Any]]) -> int:
    """Prints a line of JSON about all rows; 1 if one of them has a problem."""
    skipped = [r["case"] for r in results if r["problem"].startswith("skipped")]
    failed = [r["case"] for r in results if r["problem"] and not r["problem"].startswith("skipped")]
    print(json.dumps({"cases": len(results), "failed": failed, "skipped": skipped}))
    return int(bool(failed) or not results)
