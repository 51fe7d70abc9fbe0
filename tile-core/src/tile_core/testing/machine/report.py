"""What a run of the emulator found: lines of JSON of the host program in, findings with source lines out."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CODES: dict[str, str] = {
    "divergent-barrier": "threads that must meet at one barrier wait at different ones, or have ended",
    "divergent-collective": "lanes that must execute one instruction together do not",
    "deadlock": "every thread waits; the text says who waits for what",
    "phase-misuse": "a barrier gets too many arrivals, is used before initialisation, reused while live, or left half full",
    "missing-wait": "data of an asynchronous write is used, or a block ends, before anything waited for it",
    "overwritten": "memory is written while an asynchronous operation, or a thread, may still read it",
    "missing-fence": "an asynchronous operation reads what threads wrote, or writes what they touched, without a fence between",
    "shared-bounds": "an access outside the shared memory of the block",
    "global-bounds": "an access outside the buffer, or a write to one passed for reading",
    "uninitialised": "a read of shared memory that nothing wrote",
    "race": "two threads touch one byte, one of them writes, and no barrier orders them",
    "misaligned": "an address that is no multiple of what the access needs",
    "exited-block": "memory of a block of the cluster is touched after it ended, or nothing orders the touch before its end",
    "bad-operand": "an operand that the instruction does not allow",
    "unsupported": "an instruction that the emulator cannot execute",
    "crash": "a wild pointer or a stack that overflowed",
    "timeout": "the run took longer than it was given",
}

RAW = 1 << 31  # marks a place that is an offset of an instruction rather than a line


@dataclass(frozen=True)
class Finding:
    """One fault. ``lines`` of the kernel's source (1 is the first; 0: unknown); ``count`` of occurrences."""

    code: str
    text: str
    lines: tuple[int, ...]
    block: tuple[int, int, int]
    thread: int
    count: int

    def __str__(self) -> str:
        times = f" ({self.count} times)" if self.count > 1 else ""
        return f"{self.code}: {self.text} [block {self.block}]{times}"


@dataclass(frozen=True)
class Report:
    """Findings of one run, in the order they were met. ``stopped``: the launch could not go on, so results are partial."""

    findings: tuple[Finding, ...]
    stopped: bool = False
    seconds: float = 0.0
    compile_seconds: float = 0.0

    @property
    def codes(self) -> frozenset[str]:
        return frozenset(f.code for f in self.findings)

    @property
    def clean(self) -> bool:
        return not self.findings and not self.stopped

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings)) or "no findings"


def parse(output: str, source: str, library: Path, compile_seconds: float) -> Report:
    """The report of a finished host program from what it printed."""
    rows: list[dict[str, Any]] = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    unfinished: dict[str, Any] = {"seconds": 0.0, "stopped": True}
    summary = next((r for r in rows if "seconds" in r), unfinished)
    found = [r for r in rows if "code" in r]
    lines = _lines_of({p for r in found for p in r["places"]}, library)
    text = source.split("\n")
    findings = tuple(_finding(r, lines, text) for r in found)
    return Report(findings, summary["stopped"], summary["seconds"], compile_seconds)


def _finding(row: Mapping[str, Any], lines: dict[int, int], text: Sequence[str]) -> Finding:
    at: tuple[int, ...] = tuple(lines[p] for p in row["places"])
    shown: str = row["text"]
    for i, line in enumerate(at):
        shown = shown.replace(f"{{{i}}}", _quoted(line, text))
    return Finding(row["code"], shown, at, tuple(row["block"]), row["thread"], row["count"])


def _quoted(line: int, text: Sequence[str]) -> str:
    if not 0 < line <= len(text):
        return "an unknown place"
    return f"line {line} `{text[line - 1].strip()[:80]}`"


def _lines_of(places: Iterable[int], library: Path) -> dict[int, int]:
    """Source line of each place. Offsets of instructions go through addr2line, if there is one."""
    found = {p: p for p in places}
    raw = sorted(p for p in found if p & RAW)
    if not raw:
        return found
    tool = shutil.which("addr2line") or shutil.which("llvm-addr2line")
    found |= dict.fromkeys(raw, 0)
    if tool:
        # an offset is that of the instruction after the call
        asked = [hex((p ^ RAW) - 1) for p in raw]
        done = subprocess.run([tool, "-e", str(library), *asked], capture_output=True, text=True, check=False)
        for place, answer in zip(raw, done.stdout.splitlines()):
            number = answer.rsplit(":", 1)[-1].split(" ")[0]
            if number.isdigit() and answer.rsplit(":", 1)[0].endswith("kernel"):
                found[place] = int(number)
    return found
