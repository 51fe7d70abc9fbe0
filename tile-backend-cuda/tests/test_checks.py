"""Rows of ``tile doctor``: what they say of the compiler, the launcher and the disassembler."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from fake_driver import Fake

from tile_backend_cuda.checks import CHECKS
from tile_backend_cuda.compiler import toolkit
from tile_backend_cuda.launcher import native


def row(name: str):
    return next(c for c in CHECKS if c.name == name).run()


def test_launcher(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "built", lambda: fake.native)
    assert (row("launcher").level, row("launcher").message) == ("ok", "native")
    monkeypatch.setattr(native, "built", lambda: SimpleNamespace(INTERFACE=0))
    assert native.module() is None
    assert row("launcher").remedy == "install the package again"
    monkeypatch.setattr(native, "built", lambda: None)
    assert row("launcher").level == "warning"
    assert "C compiler" in row("launcher").remedy


def test_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    assert row("compiler").level == "ok"
    assert row("compiler").message.startswith("13.")
    monkeypatch.setattr(toolkit, "libraries", lambda: ())
    assert row("compiler").remedy == "pip install nvidia-cuda-nvrtc"


def test_disassembler(monkeypatch: pytest.MonkeyPatch) -> None:
    assert row("disassembler").level == "ok"
    monkeypatch.setattr(toolkit, "program", lambda name: None)
    assert row("disassembler").remedy == "pip install nvidia-cuda-nvdisasm"
