"""The offline compiler behind ``xcrun``: what it is asked, and what its absence or its refusal becomes."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from tile_backend_metal.backend import MetalBackend
from tile_backend_metal.compiler import toolchain
from tile_core.backend import Artifact
from tile_core.errors import BackendError, InternalError
from tile_core.hardware import Target
from tile_core.testing import stages
from tile_core.testing.kernels import BY_NAME

METAL = MetalBackend()


@pytest.fixture
def xcrun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a program in place of xcrun; gives the file where it writes its arguments."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    toolchain.version.cache_clear()

    def made(body: str) -> Path:
        file = tmp_path / "xcrun"
        file.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n{body}\n')
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return tmp_path / "asked"

    yield made
    toolchain.version.cache_clear()


def compiled() -> Artifact:
    info = METAL.info(Target("metal", "apple9"))
    source = stages.emit(BY_NAME["gemm-float16-even"], METAL, info)
    return METAL.compiler(info).compile(source, {"offline": "1"})


def test_a_metallib(xcrun: Any) -> None:
    asked = xcrun('while [ "$1" != "-o" ]; do shift; done; printf MTLB > "$2"')
    artifact = compiled()
    assert (artifact.kind, artifact.data) == ("metallib", b"MTLB")
    assert "-sdk macosx metal -std=metal3.1 -fno-fast-math" in asked.read_text()


def test_refused(xcrun: Any) -> None:
    xcrun('echo "kernel.metal:3:1: error: no" >&2; exit 1')
    with pytest.raises(InternalError, match="Apple's compiler rejects the generated code"):
        compiled()


def test_without_the_toolchain(xcrun: Any) -> None:
    xcrun('echo "xcrun: error: unable to find utility \\"metal\\"" >&2; exit 72')
    with pytest.raises(BackendError, match="finds no Metal compiler") as told:
        compiled()
    assert "Xcode" in str(told.value.help)


def test_without_xcrun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BackendError, match="no xcrun") as told:
        compiled()
    assert "leave out offline=1" in str(told.value.help)


def test_the_fingerprint_names_it(xcrun: Any) -> None:
    xcrun('echo "Apple metal version 32023.404"')
    text = METAL.compiler(METAL.info(Target.parse("metal:apple9,offline=1"))).fingerprint()
    assert text == "msl 3.1, Apple metal version 32023.404"
    assert METAL.compiler(METAL.info(Target.parse("metal:apple7"))).fingerprint() == "msl 3.0"
