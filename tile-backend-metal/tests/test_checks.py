"""Rows of ``tile doctor``: what they say of each thing that may be missing, and what to do."""

from __future__ import annotations

import platform
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError

import pytest

from tile_backend_metal import checks, probe
from tile_core.backend import Finding
from tile_core.cli.main import main


def row(name: str) -> Finding:
    return next(c for c in checks.CHECKS if c.name == name).run()


@pytest.fixture
def mac(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(probe, "on_mac", lambda: True)
    monkeypatch.setattr(platform, "mac_ver", lambda: ("15.1", ("", "", ""), "arm64"))
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    return monkeypatch


def test_not_a_mac(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "on_mac", lambda: False)
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    assert row("system") == Finding("error", "Linux has no Metal", checks.ELSEWHERE)
    assert {row(name).level for name in ("torch", "pyobjc", "offline compiler")} == {"ok"}


def test_a_mac_with_everything(mac: pytest.MonkeyPatch) -> None:
    mac.setattr(checks, "version", lambda name: "2.9.0")
    mac.setattr(checks, "find_spec", lambda name: ModuleSpec(name, None))
    mac.setattr(checks.shutil, "which", lambda name: "xcrun")
    found = {name: row(name) for name in ("system", "torch", "pyobjc", "offline compiler")}
    assert {f.level for f in found.values()} == {"ok"}
    assert found["system"].message == "macOS 15.1"


def test_an_old_macos(mac: pytest.MonkeyPatch) -> None:
    mac.setattr(platform, "mac_ver", lambda: ("12.6", ("", "", ""), "arm64"))
    assert row("system") == Finding("error", "macOS 12.6 has no MSL 3.0", "update to macOS 13 or newer")


@pytest.mark.parametrize(
    ("version", "machine", "message", "remedy"),
    [
        (None, "arm64", "not installed", "pip install torch"),
        ("2.5.1", "arm64", "no torch.mps.compile_shader", "pip install 'torch>=2.7'"),
        ("2.9.0", "x86_64", "has no mps", "use a Python for arm64"),
    ],
)
def test_torch(mac: pytest.MonkeyPatch, version: str | None, machine: str, message: str, remedy: str) -> None:
    def asked(name: str) -> str:
        if version is None:
            raise PackageNotFoundError(name)
        return version

    mac.setattr(checks, "version", asked)
    mac.setattr(platform, "machine", lambda: machine)
    found = row("torch")
    assert found.level == "warning"
    assert message in found.message
    assert remedy in found.remedy


def test_no_pyobjc(mac: pytest.MonkeyPatch) -> None:
    mac.setattr(checks, "find_spec", lambda name: None)
    assert row("pyobjc").remedy == "pip install pyobjc-framework-Metal"
    assert row("pyobjc").level == "warning"


def test_the_emulators_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "sh")
    assert row("emulator").level == "ok"
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", "")
    assert row("emulator").level == "warning"
    assert "install g++" in row("emulator").remedy


def test_rows_as_doctor_prints_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "on_mac", lambda: False)
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    main(["doctor"])
    rows = [
        line.split(maxsplit=1)[1]
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("metal ")
    ]
    assert [r.split()[0] for r in rows] == [
        "backend",
        "system",
        "torch",
        "pyobjc",
        "offline",
        "emulator",
        "devices",
    ]
    assert sum(" error " in r for r in rows) == 1
    assert "Linux has no Metal" in rows[1]
    assert checks.ELSEWHERE in rows[1]
