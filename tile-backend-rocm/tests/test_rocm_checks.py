"""Rows of ``tile doctor``: one for each thing that may be missing, with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tile_backend_rocm import checks, probe
from tile_backend_rocm.checks import CHECKS
from tile_backend_rocm.compiler import toolkit
from tile_core.backend import Finding


def row(name: str) -> Finding:
    return next(c for c in CHECKS if c.name == name).run()


def test_rows_have_names_of_their_own() -> None:
    assert len({c.name for c in CHECKS}) == len(CHECKS)


def test_compiler_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("ROCM_PATH", "")
    found = row("compiler")
    assert (found.level, found.message) == ("warning", "neither clang nor HIPRTC is found")
    assert found.remedy.startswith("apt-get install clang-19 lld-19")
    assert row("linker").remedy.startswith("apt-get install clang-19 lld-19")
    assert row("disassembler").remedy == "apt-get install llvm-19, or newer"


def test_compiler_is_there() -> None:
    assert [row(n).level for n in ("linker", "disassembler")] == ["ok", "ok"]
    assert "clang 19" in row("compiler").message


def test_linker_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkit.Clang, "linker", None)
    assert row("linker").message == "no ld.lld"


def test_library_is_missing() -> None:
    found = row("HIP runtime")
    assert found.level == "error"
    assert "libamdhip64.so" in found.message and "install ROCm" in found.remedy


def test_driver_and_devices_are_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(probe, "TOPOLOGY", tmp_path / "nothing")
    probe.devices.cache_clear()
    assert checks.CHECKS[0].run().level == "error"
    assert "kernel driver" in row("driver").message
    found = row("devices")
    assert (found.level, found.message) == ("warning", "none")
    assert "HIP_VISIBLE_DEVICES" in found.remedy
    probe.devices.cache_clear()


def test_devices_by_the_runtime_and_the_driver(
    fake_library: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for n in range(2):
        (tmp_path / str(n)).mkdir()
        (tmp_path / str(n) / "properties").write_text("gfx_target_version 90402\n")
    monkeypatch.setattr(probe, "TOPOLOGY", tmp_path)
    monkeypatch.setattr(probe, "RUNTIMES", (str(fake_library),))
    probe.devices.cache_clear()
    try:
        assert [str(d.target) for d in probe.devices()] == ["rocm:gfx942"] * 2
        assert row("devices").message == "Fake 0, Fake 1"
    finally:
        probe.devices.cache_clear()
