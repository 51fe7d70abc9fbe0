"""A kernel on its whole way: compiled by NVRTC, called cold and warm on the fake driver, exported and loaded again."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fake_driver import CONTEXT, Fake
from written import TEXT, add, tensors

import tile_core as tile
from tile_core import settings
from tile_core.errors import ArgumentError, BackendError, Unsupported
from tile_core.runtime import calling


def test_cold_and_warm(backend: Any, fake: Fake, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tile.compile(add, target="cuda:sm_90a")
    a, b, c = tensors()
    kernel(a, b, c)
    assert torch.equal(c, a + b)
    looked: list[str] = []
    monkeypatch.setattr(calling.Call, "of", lambda arguments: looked.append("at") or _call_of(arguments))
    for n in (300, 200, 1):
        a, b, c = tensors(n)
        kernel(a, b, c, stream=9)
        assert torch.equal(c, a + b)
        assert fake.seen.grid[0] == -(-n // 128)
        assert fake.seen.stream == 9
    assert looked == ([] if how == "native" else ["at"] * 3)
    a, b, c = np.ones(5, np.float32), np.ones(5, np.float32), np.zeros(5, np.float32)
    kernel(a, b, c)
    assert (c == 2).all()


_call_of = calling.Call.of

A, B, C = tensors()
MISTAKES: dict[str, tuple[tuple[Any, ...], str]] = {
    "type": ((A, B.half(), C), "B is float16, the kernel takes float32"),
    "rank": ((A, B, C[None]), r"C has 2 dimensions, the kernel takes 1: \(N\)"),
    "extent": ((A, B[:100], C), "dimension 0 of B is 100, but N is 256 in A"),
    "stride": ((A, B, torch.zeros(512)[::2]), "C is not contiguous"),
    "count": ((A, B), r"add takes 3 arguments \(A, B, C\), 2 are given"),
    "no tensor": ((A, B, 3), "C is int, a tensor is needed"),
    "device": ((A, B, torch.zeros(256, device="meta")), "meta"),
    "alignment": (
        (A, B, torch.from_numpy(np.zeros(1028, np.uint8)[1:1025].view(np.float32))),
        "not aligned to 4 bytes",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_warm_calls_raise_what_cold_ones_do(backend: Any, fake: Fake, mistake: str) -> None:
    arguments, message = MISTAKES[mistake]
    kernel = tile.compile(add, target="cuda:sm_90a")
    with pytest.raises(ArgumentError, match=message) as cold:
        kernel(*arguments)
    kernel(*tensors())
    with pytest.raises(ArgumentError, match=message) as warm:
        kernel(*arguments)
    assert str(warm.value) == str(cold.value)
    assert fake.seen.launches == 1


def test_no_elements(backend: Any, fake: Fake) -> None:
    kernel = tile.compile(add, target="cuda:sm_90a")
    for _ in range(2):
        kernel(*tensors(0))
        kernel(*tensors(1))
    assert fake.seen.launches == 2


def test_the_target_is_chosen_anew_by_each_call(backend: Any, fake: Fake) -> None:
    """A warm call follows ``with tile.target`` and the environment as a cold one does."""
    kernel = tile.compile(add)
    a, b, c = tensors()
    for target, launches in (
        ("cuda:sm_90a", 1),
        ("cpu", 1),
        ("cuda:sm_90a", 2),
        ("interpreter", 2),
        ("cuda:sm_90a,line_info=1", 3),
    ):
        with tile.target(target):
            kernel(a, b, c.zero_())
        assert torch.equal(c, a + b)
        assert fake.seen.launches == launches
        assert str(kernel.target).startswith(target)


def test_the_environment_is_followed(
    backend: Any, fake: Fake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    token = settings._override.set(None)  # leave the fixture's scope
    try:
        monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path))
        kernel = tile.compile(add)
        for target, launches in (("cuda:sm_90a", 1), ("cpu", 1), ("cuda:sm_90a", 2)):
            monkeypatch.setenv("TILE_TARGET", target)
            kernel(*tensors())
            assert fake.seen.launches == launches
        monkeypatch.setenv("TILE_INTERPRET", "1")
        kernel(*tensors())
        assert str(kernel.target).startswith("interpreter")
    finally:
        settings._override.reset(token)


def test_outputs_are_allocated(backend: Any, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Warm too, in the kind of the inputs, by C where it can."""
    for out_idx, given in (([-1], 2), ([0], 2), (1, 2)):
        kernel = tile.compile(add, out_idx=out_idx, target="cuda:sm_90a")
        a, b, _ = tensors()
        kernel(a, b)
        looked: list[str] = []
        with monkeypatch.context() as patch:
            patch.setattr(calling.Call, "of", lambda x, looked=looked: looked.append("at") or _call_of(x))
            for n in (256, 1, 300):
                inputs = [torch.randn(n) for _ in range(given)]
                made = kernel(*inputs)
                assert made.shape == (n,) and made.dtype == torch.float32
                if out_idx == [-1]:
                    assert torch.equal(made, inputs[0] + inputs[1])
            assert looked == ([] if how == "native" else ["at"] * 3)
        with pytest.raises(ArgumentError, match="takes 2 arguments"):
            kernel(a)
        with pytest.raises(ArgumentError, match="is float16"):
            kernel(a.half(), b)
    kernel = tile.compile(add, out_idx=[-1], target="cuda:sm_90a")
    for _ in range(2):
        made = kernel(np.ones(5, np.float32), np.ones(5, np.float32))
        assert isinstance(made, np.ndarray)
        assert (made == 2).all()


def test_several_outputs_in_the_order_asked_for(backend: Any) -> None:
    kernel = tile.compile(add, out_idx=[2, 0], target="cuda:sm_90a")
    b = torch.zeros(64)
    for _ in range(3):
        c, a = kernel(b)
        assert a.shape == c.shape == (64,)
        assert torch.equal(c.nan_to_num(), a.nan_to_num())  # what was in new memory, plus zero


def test_what_was_compiled(backend: Any) -> None:
    kernel = tile.compile(add, target="cuda:sm_90a")
    assert kernel.source == TEXT
    assert kernel.artifact.kind == "cubin"
    assert kernel.resources["registers"] > 0
    assert kernel.resources["spill_stores"] == 0
    assert kernel.findings == ()
    assert "EXIT" in kernel.disassemble()


def test_a_bundle(
    backend: Any, fake: Fake, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tile.compile(add, target="cuda:sm_90a").export(tmp_path / "add")
    assert {f.name for f in folder.iterdir()} == {"manifest.json", "add.cubin", "add.cu"}
    bundle = tile.load(folder)
    assert (bundle.name, str(bundle.target), bundle.source) == ("add", "cuda:sm_90a", TEXT)
    assert bundle.versions["toolkit"].startswith("nvrtc ")
    a, b, c = tensors()
    bundle(a, b, c)
    assert torch.equal(c, a + b)
    looked: list[str] = []
    monkeypatch.setattr(calling.Call, "of", lambda arguments: looked.append("at") or _call_of(arguments))
    bundle(a, b, c.zero_())
    assert torch.equal(c, a + b)
    assert looked == ([] if how == "native" else ["at"])
    with pytest.raises(ArgumentError, match="B is float16"):
        bundle(a, b.half(), c)
    assert tile.bench(bundle, a, b, c, repeat_ms=1).median == 0.25
    monkeypatch.setattr(backend, "devices", lambda: ())
    with pytest.raises(BackendError, match="there is no cuda device 0 here"):
        tile.load(folder)(a, b, c)


def test_devices_of_several_threads(backend: Any, fake: Fake, how: str) -> None:
    kernel = tile.compile(add, target="cuda:sm_90a")
    wrong: list[int] = []

    def work(n: int) -> None:
        for _ in range(30):
            a, b, c = tensors(n)
            kernel(a, b, c)
            if not torch.equal(c, a + b):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in (1, 100, 128, 300, 1000, 4000)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert fake.seen.context == CONTEXT


def test_generated_code_is_compiled_loaded_and_launched(
    fake: Fake, backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The backend's own lowering and code generation; the fake driver runs nothing, so no values are looked at."""
    for name in ("lowering", "codegen"):
        monkeypatch.delattr(backend, name)
    kernel = tile.compile(add, target="cuda:sm_90a")
    for n in (1000, 1000, 5):
        kernel(*tensors(n))
        assert fake.seen.grid[0] == -(-n // 128)
        assert fake.seen.block[0] == 128
    assert fake.seen.launches == 3


def test_options_of_the_target(backend: Any) -> None:
    assert tile.compile(add, target="cuda:sm_90a,fast_math=1").resources["registers"] > 0
    with pytest.raises(Unsupported, match="no option 'fastmath'"):
        _ = tile.compile(add, target="cuda:sm_90a,fastmath=1").artifact
