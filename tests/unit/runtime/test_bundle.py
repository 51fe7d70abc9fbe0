"""Bundles on the cpu target: written here, run in a process that has neither TVM, z3 nor the compiler."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core import settings
from tile_core.cli import main
from tile_core.errors import ArgumentError, BackendError, BackendNotFound, TileError

EXAMPLES = Path(__file__).parents[3] / "examples"
N = T.dynamic("N")


@T.prim_func
def scale(A: T.Tensor((N, 16), "float32"), B: T.Tensor((N, 16), "float32"), factor: T.float32):
    with T.Kernel(N, threads=16) as row:
        for i in T.Parallel(16):
            B[row, i] = A[row, i] * factor


@pytest.fixture(autouse=True)
def cache(tmp_path: Path) -> Iterator[None]:
    with settings.scope(cache_dir=str(tmp_path / "cache")):
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tile.compile(scale, target="cpu").export(tmp_path / "made" / "scale")


def test_files(folder: Path) -> None:
    assert {f.name for f in folder.iterdir()} == {"manifest.json", "scale.object", "scale.ll"}
    manifest = json.loads((folder / "manifest.json").read_text("utf8"))
    assert manifest["name"] == "scale"
    assert manifest["target"].startswith("cpu:")
    assert manifest["versions"]["tile-core"] == "0.1.0"
    assert "llvmlite" in manifest["versions"]["toolkit"]
    assert [p["name"] for p in manifest["launch"]["params"]] == ["A", "B", "factor", "N"]


def test_it_is_called_like_the_kernel(folder: Path) -> None:
    kernel, bundle = tile.compile(scale, target="cpu"), tile.load(folder)
    a = np.random.default_rng(0).normal(size=(5, 16)).astype(np.float32)
    b, c = np.zeros_like(a), np.zeros_like(a)
    kernel(a, b, 3.0)
    assert bundle(a, c, 3.0) is None
    assert (b == c).all()
    assert (b == a * np.float32(3)).all()
    assert bundle.source == kernel.source
    assert bundle.artifact.data == kernel.artifact.data
    assert bundle.resources == kernel.resources
    assert bundle.findings == ()
    assert repr(bundle) == f"<bundle scale: {kernel.target}>"
    assert tile.bench(bundle, a, c, 3.0, repeat_ms=1).median > 0


def test_the_same_errors(folder: Path) -> None:
    kernel, bundle = tile.compile(scale, target="cpu"), tile.load(folder)
    a = np.zeros((4, 16), np.float32)
    for arguments in (
        (a, a),
        (a, a.astype(np.float16), 1.0),
        (a, a[:, ::2], 1.0),
        (a, a[:2], 1.0),
        (a, a, "x"),
    ):
        with pytest.raises(ArgumentError) as mine:
            kernel(*arguments)
        with pytest.raises(ArgumentError) as theirs:
            bundle(*arguments)
        assert str(theirs.value) == str(mine.value)


def test_a_fresh_process_needs_no_compiler(tmp_path: Path) -> None:
    """Outputs are allocated too. Of LLVM only what loads the object is imported."""
    for name in ("gemm_relu", "softmax"):
        assert main(("export", f"{EXAMPLES}/{name}.py:{name}", str(tmp_path / name), "--target", "cpu")) == 0
    code = f"""
import sys

class Forbidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("tvm", "tvm_ffi", "z3", "torch", "ml_dtypes", "rich"):
            raise AssertionError(f"{{name}} is imported")

sys.meta_path.insert(0, Forbidden())
import numpy as np
import tile_core as tile

kernel = tile.load({str(tmp_path / "gemm_relu")!r})
shapes = [p.shape for p in kernel.launch.params]
rng = np.random.default_rng(0)
a, b = (rng.normal(size=s).astype(np.float16) for s in shapes[:2])
c = kernel(a, b)
want = np.maximum(a.astype(np.float32) @ b.astype(np.float32), 0)
assert np.abs(c - want).max() < 0.1, np.abs(c - want).max()
softmax = tile.load({str(tmp_path / "softmax")!r})
compilers = ("_tvm", "lowering", "cpu.codegen", "cpu.compiler")
print([m for m in sys.modules if m.startswith(tuple(f"tile_core.{{c}}" for c in compilers))])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = f"{EXAMPLES}/gemm_relu.py:gemm_relu"
    assert main(("export", file, str(tmp_path / "out"), "--target", "cpu", "--json")) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {Path(r["file"]).name for r in rows} == {"manifest.json", "gemm_relu.object", "gemm_relu.ll"}
    (tmp_path / "file").write_text("")
    assert main(("export", file, str(tmp_path / "file"), "--target", "cpu")) == 1
    assert "cannot be written" in capsys.readouterr().err


def changed(folder: Path, **changes: object) -> None:
    file = folder / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text("utf8")), **changes}), "utf8")


def test_what_is_no_bundle(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(BackendError, match=r"there is no bundle in .*nowhere") as caught:
        tile.load(tmp_path / "nowhere")
    assert "tile export" in str(caught.value)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(BackendError, match="cannot be read"):
        tile.load(tmp_path)
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(BackendError, match="cannot be read"):
        tile.load(tmp_path)
    changed(folder, target="nonsense:x")
    with pytest.raises(BackendNotFound, match="nonsense"):
        tile.load(folder)
    changed(folder, format=99)
    with pytest.raises(BackendError, match="has format 99, this version of tile reads 1"):
        tile.load(folder)


def test_damage(folder: Path) -> None:
    data = (folder / "scale.object").read_bytes()
    (folder / "scale.object").write_bytes(data[:-1] + b"\0\0")
    with pytest.raises(BackendError, match=r"scale\.object is damaged"):
        tile.load(folder)
    (folder / "scale.object").unlink()
    with pytest.raises(BackendError, match="is missing"):
        tile.load(folder)


def test_files_outside_the_bundle_are_not_read(folder: Path) -> None:
    changed(folder, files={k: {"name": "../scale.ll", "sha256": ""} for k in ("artifact", "source")})
    with pytest.raises(BackendError, match="no name of a file"):
        tile.load(folder)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TileError, match="cannot be written"):
        tile.compile(scale, target="cpu").export(tmp_path / "file" / "inside")
