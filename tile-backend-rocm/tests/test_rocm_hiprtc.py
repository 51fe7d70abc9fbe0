"""The compiler on a HIPRTC that hands the work to clang: what it is given, and which of the two is taken."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_hip import library
from hip_products import BACKEND, Product, compiled, emitted, info_of

from tile_backend_rocm.compiler import RocmCompiler, hiprtc, toolkit
from tile_core.backend import Source
from tile_core.errors import BackendError, InternalError, Unsupported

SOURCE = emitted(Product("gfx942"))


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ctypes.CDLL]:
    path = str(library(tmp_path, "fakehiprtc"))
    monkeypatch.setattr(hiprtc, "LIBRARIES", (path,))
    yield ctypes.CDLL(path)
    hiprtc.loaded.cache_clear()
    hiprtc._clang.cache_clear()


def compiler() -> RocmCompiler:
    return RocmCompiler(info_of("gfx942"))


def test_the_same_code(fake: ctypes.CDLL) -> None:
    """Only what needs no ROCm is different."""
    found = compiler().compile(SOURCE, {"compiler": "hiprtc", "strict": True})
    assert found.kind == "hsaco"
    assert found.resources == compiled(Product("gfx942", clang="clang-19")).resources


def test_it_is_taken_where_there_is_no_clang(fake: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiler().fingerprint().startswith("clang ")
    monkeypatch.setattr(toolkit, "compilers", lambda: ())
    assert compiler().fingerprint().startswith("hiprtc of clang 19.")
    assert compiler().compile(SOURCE, {}).resources["vgpr_spills"] == 0
    checks = {c.name: c.run() for c in BACKEND.checks()}
    assert "hiprtc of clang 19" in checks["compiler"].message and "gfx950" in checks["compiler"].message
    with pytest.raises(BackendError, match="clang is not found"):
        compiler().compile(SOURCE, {"compiler": "clang"})


def test_rejected_source(fake: ctypes.CDLL) -> None:
    wrong = Source(SOURCE.text + "wrong", SOURCE.language, SOURCE.suffix, SOURCE.launch)
    with pytest.raises(InternalError, match="unknown type name 'wrong'") as caught:
        compiler().compile(wrong, {"compiler": "hiprtc"})
    assert "report" in str(caught.value.help)


def test_it_fails(fake: ctypes.CDLL) -> None:
    assert toolkit.library("gfx942").knows("gfx942")
    fake.fake_fail(11)
    with pytest.raises(BackendError, match=r"hiprtcCompileProgram of .* fails with error 11"):
        compiler().compile(SOURCE, {"compiler": "hiprtc"})


def test_it_is_too_old(fake: ctypes.CDLL) -> None:
    fake.fake_older(15)
    with pytest.raises(BackendError, match=r"hiprtc of clang 15\..* cannot compile for gfx942") as caught:
        compiler().compile(SOURCE, {"compiler": "hiprtc"})
    assert "needs clang 17" in str(caught.value.why) and "newer ROCm" in str(caught.value.help)


def test_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hiprtc, "LIBRARIES", ("libno-such-hiprtc.so",))
    with pytest.raises(BackendError, match="HIPRTC is not found"):
        compiler().compile(SOURCE, {"compiler": "hiprtc"})
    with pytest.raises(Unsupported, match="no compiler nvcc"):
        compiler().compile(SOURCE, {"compiler": "nvcc"})
