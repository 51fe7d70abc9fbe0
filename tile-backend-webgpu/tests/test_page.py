"""Kernels as web pages, run in Chromium without a window: the page itself, and calls from a page of one's own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from browser import Browser

import tile_core as tile
import tile_core.language as T
from tile_backend_webgpu.page.expressions import tree
from tile_core.errors import InternalError, TileError, Unsupported
from tile_core.runtime import page

FILES = {"index.html", "tile.js", "kernel.json", "gemm.wgsl"}


@pytest.fixture
def browser(node: str, chromium: str) -> Browser:
    return Browser(node, chromium)


@tile.jit(out_idx=[-1])
def gemm(M, N, K, type="float32"):
    @T.prim_func
    def kernel(A: T.Tensor((M, K), type), B: T.Tensor((K, N), type), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=64) as (bx, by):
            a = T.alloc_shared((32, 16), type)
            b = T.alloc_shared((16, 32), type)
            acc = T.alloc_fragment((32, 32), "float32")
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, 16), num_stages=2):
                T.copy(A[by * 32, k * 16], a)
                T.copy(B[k * 16, bx * 32], b)
                T.gemm(a, b, acc)
            T.copy(acc, C[by * 32, bx * 32])

    return kernel


@tile.jit
def scaled():
    m, n = T.dynamic("m, n")

    @T.prim_func
    def kernel(
        X: T.Tensor((m, n), "int8"), Y: T.Tensor((m, n), "float32"), H: T.Tensor((4,), "int32"), by: T.float32
    ):
        with T.Kernel(T.ceildiv(m, 4), threads=64) as bx:
            for i, j in T.Parallel(4, n):
                if bx * 4 + i < m:
                    Y[bx * 4 + i, j] = X[bx * 4 + i, j] * by
                    T.atomic_add(H[(bx * 4 + i) % 4], 1)

    return kernel


def array(values: np.ndarray, type: str = "Float32Array") -> str:
    return f"new {type}({json.dumps(values.ravel().tolist())})"


def returned(call: str, names: Sequence[str]) -> str:
    picked = ", ".join(f"{n}: [...out.{n}]" for n in names)
    return f"const out = await {call}; return {{{picked}}};"


def test_page(browser: Browser, tmp_path: Path):
    """The page runs by itself, and its kernel is called with data of ours, twice with other values."""
    folder = gemm(48, 40, 24).export_web(tmp_path / "page")
    assert {p.name for p in folder.iterdir()} == FILES
    rng = np.random.default_rng(0)
    pairs = [(rng.standard_normal((48, 24)), rng.standard_normal((24, 40))) for _ in range(2)]
    calls = [returned(f"kernel.run({{A: {array(a)}, B: {array(b)}}})", ["C"]) for a, b in pairs]
    screenshot = tmp_path / "page.png"
    state = "return document.getElementById('state').textContent"
    *results, said = browser.run(folder, [*calls, state], screenshot)
    for (a, b), out in zip(pairs, results, strict=True):
        got = np.array(out["C"]).reshape(48, 40)
        assert np.abs(got - a.astype(np.float32) @ b.astype(np.float32)).max() < 1e-4
    assert said.startswith("ran in ")
    data = screenshot.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) > 10_000


def test_from_a_page_of_ones_own(browser: Browser, tmp_path: Path):
    """``tile.js`` alone, with symbolic dimensions, a number, an int8 tensor and one that is updated in place."""
    folder = scaled().export_web(tmp_path)
    (folder / "index.html").write_text("<link rel='icon' href='data:,'><body data-ready>")
    x = np.arange(-15, 15, dtype=np.int8).reshape(5, 6)
    load = "const {loadKernel} = await import('./tile.js'); globalThis.k = await loadKernel('./kernel.json')"
    arguments = (
        f"X: {{data: {array(x, 'Int8Array')}, shape: [5, 6]}}, H: new Int32Array([7, 0, 0, 0]), by: 0.5"
    )
    out = browser.run(folder, [load, returned(f"k.run({{{arguments}}})", ["Y", "H"])])[1]
    np.testing.assert_array_equal(np.array(out["Y"]).reshape(5, 6), x * 0.5)
    assert out["H"] == [7 + 12, 6, 6, 6]


def test_float16_without_the_feature(browser: Browser, tmp_path: Path):
    """The page is for the default target, which computes float16 in float32: SwiftShader has no ``shader-f16``."""
    folder = gemm(32, 32, 16, "float16").export_web(tmp_path)
    assert json.loads((folder / "kernel.json").read_text())["features"] == []
    a, b = (np.random.default_rng(s).standard_normal((32, 16)).astype(np.float16) for s in (0, 1))
    bits = [array(v.view(np.uint16), "Uint16Array") for v in (a, b.T)]
    (out,) = browser.run(folder, [returned(f"kernel.run({{A: {bits[0]}, B: {bits[1]}}})", ["C"])])
    wanted = a.astype(np.float32) @ b.T.reshape(16, 32).astype(np.float32)
    assert np.abs(np.array(out["C"]).reshape(32, 32) - wanted).max() < 1e-4


MISTAKES = [
    ("{A: new Float32Array(8)}", "A has 8 elements, the kernel takes 1152"),
    ("{A: new Float64Array(1152)}", "A is Float64Array, a Float32Array is needed for float32"),
    ("{A: new Float32Array(1152)}", "the argument B of gemm is missing"),
    ("{a: 1}", "gemm has no argument a"),
]


def test_mistakes_in_a_call(browser: Browser, tmp_path: Path):
    folder = gemm(48, 40, 24).export_web(tmp_path)
    calls = [
        f"try {{ await kernel.run({given}); }} catch (e) {{ return e.message; }}" for given, _ in MISTAKES
    ]
    assert browser.run(folder, calls) == [message for _, message in MISTAKES]


def test_adapter_without_a_feature(browser: Browser, tmp_path: Path):
    """A page that was made for another target says what the browser's adapter lacks."""
    with tile.target("webgpu:apple"):
        folder = gemm(48, 40, 24, "float16").export_web(tmp_path)
    (said,) = browser.run(folder, ["return document.getElementById('state').textContent"])
    assert "shader-f16" in said
    assert "webgpu:default" in said


def test_kernel_that_runs_elsewhere_here(tmp_path: Path):
    with tile.target("cpu"):
        folder = gemm(48, 40, 24).export_web(tmp_path)
    assert {p.name for p in folder.iterdir()} == FILES


def test_nobody_writes_pages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(page, "registry", lambda: SimpleNamespace(usable=lambda: ()))
    with pytest.raises(Unsupported, match="no backend here writes web pages"):
        gemm(48, 40, 24).export_web(tmp_path)


def test_folder_that_cannot_be_written(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TileError, match="cannot be written"):
        gemm(48, 40, 24).export_web(tmp_path / "file" / "page")


@pytest.mark.parametrize(
    ("extent", "wanted"),
    [
        (7, 7),
        ("(n + 3) // 4", ["//", ["+", "n", 3], 4]),
        ("min(n, -2)", ["min", "n", ["-", 0, 2]]),
        ("1 if n < 2 else truncmod(n, 3)", ["?", ["<", "n", 2], 1, ["truncmod", "n", 3]]),
    ],
)
def test_extents(extent: int | str, wanted: Any):
    assert tree(extent) == wanted


def test_extent_of_another_kind():
    with pytest.raises(InternalError):
        tree("open('file')")
