"""What a user sees when something goes wrong."""

from __future__ import annotations

import traceback
from pathlib import Path

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core import settings
from tile_core.cpu.codegen import CpuCodegen


@T.prim_func
def ones(C: T.Tensor((4,))):
    with T.Kernel(1):
        C[0] = 1.0


def frames(error: BaseException) -> list[str]:
    return [f.filename for f in traceback.extract_tb(error.__traceback__)]


def test_frames_of_tile_are_folded() -> None:
    kernel = tile.compile(ones, target="cpu")
    with pytest.raises(tile.ArgumentError) as caught:
        kernel(np.zeros(5, np.float32))
    assert len([f for f in frames(caught.value) if "tile_core" in f]) <= 3
    with settings.scope(traceback="full"), pytest.raises(tile.ArgumentError) as full:
        kernel(np.zeros(5, np.float32))
    assert len(frames(full.value)) > len(frames(caught.value))


def test_a_fault_of_tile_writes_a_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(self: object, plan: object) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(CpuCodegen, "emit", broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with settings.scope(cache_dir=str(tmp_path / "cache")), pytest.raises(tile.InternalError) as caught:
        tile.compile(ones, target="cpu")(np.zeros(4, np.float32))
    assert "please report it with the folder" in str(caught.value)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    (folder,) = tmp_path.glob("tile-report-ones-*")
    assert {f.name for f in folder.iterdir()} == {"program.txt", "traceback.txt", "versions.txt"}
    assert "on purpose" in (folder / "traceback.txt").read_text()


def test_stages_are_dumped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with settings.scope(cache_dir=str(tmp_path / "cache")):
        tile.compile(ones, target="cpu")(np.zeros(4, np.float32))
        with settings.scope(
            dump="program,plan,ir,source"
        ):  # now it is in the cache, and made again all the same
            tile.compile(ones, target="cpu")(np.zeros(4, np.float32))
    (folder,) = tmp_path.glob("tile-ones-*")
    names = ["00_program.txt", "01_plan.txt", "02_ir.txt", "03_source.txt"]
    assert sorted(f.name for f in folder.iterdir()) == names
    assert "prim_func" in (folder / "02_ir.txt").read_text()
    assert str(folder) in capsys.readouterr().out


@pytest.mark.parametrize(("variable", "value"), [("TILE_DUMP", "program,plam"), ("TILE_THREADS", "many")])
def test_a_malformed_setting_is_named(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(tile.TileError, match=variable):
        tile.compile(ones, target="cpu")(np.zeros(4, np.float32))


def test_machine_code_can_be_shown(tmp_path: Path) -> None:
    with settings.scope(cache_dir=str(tmp_path)):
        kernel = tile.compile(ones, target="cpu")
        assert "ones_0" in kernel.disassemble()
        with pytest.raises(tile.Unsupported, match="cannot disassemble"):
            tile.compile(ones, target="interpreter").disassemble()
