"""The record of a conformance run: one row of ``devices.toml`` for each device that tests really ran on."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from ..backend import Backend
from ..errors import TileError
from ..hardware import Device, TestedDevice
from ..registry import registry
from . import SUITE


@dataclass
class Tally:
    """Outcomes of the tests of one backend or device."""

    outcomes: dict[str, str] = field(default_factory=dict[str, str])
    reasons: Counter[str] = field(default_factory=Counter[str])

    def count(self, outcome: str) -> int:
        return sum(o == outcome for o in self.outcomes.values())


class Recorder:
    """Counts reports as they come, and writes the rows when the session ends."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.by_device: dict[tuple[str, str], Tally] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told = {str(name): str(value) for name, value in report.user_properties}
        if "tile_device" not in told or (report.when != "call" and report.passed):
            return
        tally = self.by_device.setdefault((told["tile_backend"], told["tile_device"]), Tally())
        tally.outcomes[report.nodeid] = report.outcome
        if report.skipped and isinstance(report.longrepr, tuple):
            tally.reasons[report.longrepr[2].removeprefix("Skipped: ")] += 1

    def pytest_sessionfinish(self) -> None:
        rows = [
            row(*key, tally)
            for key, tally in self.by_device.items()
            if tally.count("passed") + tally.count("failed")
        ]
        if rows:
            before = self.file.read_text("utf8") if self.file.is_file() else ""
            self.file.write_text(before + "".join(map(text, rows)), "utf8")


def row(name: str, device: str, tally: Tally) -> TestedDevice:
    """The row of one device, named ``target/index``."""
    backend = registry().get(name)
    target, _, index = device.rpartition("/")
    here = next(d for d in backend.devices() if (str(d.target), d.index) == (target, int(index)))
    lines = "\n".join(f"{test} {outcome}" for test, outcome in sorted(tally.outcomes.items()))
    return TestedDevice(
        device=here.name,
        arch=here.target.arch,
        driver=here.driver,
        toolkit=_toolkit(backend, here),
        backend_version=_version(type(backend).__module__.partition(".")[0]),
        suite_version=SUITE,
        date=datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        passed=tally.count("passed"),
        failed=tally.count("failed"),
        skipped=dict(tally.reasons),
        report=hashlib.sha256(lines.encode()).hexdigest(),
    )


def text(tested: TestedDevice) -> str:
    """A row as TOML."""
    lines = ["", "[[device]]"]
    for name in TestedDevice.__slots__:
        value = getattr(tested, name)
        if name == "skipped":
            pairs = ", ".join(f"{json.dumps(reason)} = {count}" for reason, count in value.items())
            lines.append(f"skipped = {{ {pairs} }}" if pairs else "skipped = {}")
        else:
            lines.append(f"{name} = {json.dumps(value)}")
    return "\n".join(lines) + "\n"


def _toolkit(backend: Backend, device: Device) -> str:
    try:
        return backend.compiler(backend.info(device.target)).fingerprint()
    except TileError:
        return ""


def _version(package: str) -> str:
    try:
        return version(package.replace("_", "-"))
    except PackageNotFoundError:
        return ""
