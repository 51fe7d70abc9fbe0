"""A kernel on its whole way: compiled by clang, called on the fake runtime, exported and loaded again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fake_hip import Fake

import tile_core as tile
import tile_core.language as T
from tile_core.errors import ArgumentError, BackendError

N = T.dynamic("N")


@T.prim_func
def add(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(T.ceildiv(N, 256), threads=256) as bx:
        for i in T.Parallel(256):
            C[bx * 256 + i] = A[bx * 256 + i] + B[bx * 256 + i]


def tensors(n: int = 300) -> list[torch.Tensor]:
    return [torch.randn(n), torch.randn(n), torch.zeros(n)]


def test_calls(backend: Any, fake: Fake) -> None:
    kernel = tile.compile(add, target="rocm:gfx942")
    for n in (300, 5, 1024):
        a, b, c = tensors(n)
        kernel(a, b, c, stream=9)
        assert torch.equal(c, a + b)
        assert (tuple(fake.seen.grid), tuple(fake.seen.block)) == ((-(-n // 256), 1, 1), (256, 1, 1))
        assert (fake.seen.stream, fake.seen.shared) == (9, 0)
    kernel(*tensors(0))
    assert fake.seen.launches == 3
    x = np.ones(5, np.float32)
    kernel(x, x.copy(), c := np.zeros(5, np.float32))
    assert c.tolist() == [2.0] * 5


def test_wrong_arguments(backend: Any, fake: Fake) -> None:
    kernel = tile.compile(add, target="rocm:gfx942")
    a, b, c = tensors()
    with pytest.raises(ArgumentError, match="B is float16"):
        kernel(a, b.half(), c)
    assert fake.seen.launches == 0


def test_resources_and_instructions(backend: Any) -> None:
    kernel = tile.compile(add, target="rocm:gfx942")
    assert kernel.resources["vgprs"] > 0 and kernel.resources["vgpr_spills"] == 0
    assert kernel.findings == ()
    assert "global_load_dword" in kernel.disassemble()


def test_code_for_another_device(backend: Any, fake: Fake) -> None:
    kernel = tile.compile(add, target="rocm:gfx90a")
    with pytest.raises(BackendError, match="gfx90a"):
        kernel(*tensors())
    assert fake.seen.launches == 0


def test_export(backend: Any, fake: Fake, tmp_path: Path) -> None:
    tile.compile(add, target="rocm:gfx942").export(tmp_path / "add.tile")
    a, b, c = tensors()
    tile.load(tmp_path / "add.tile")(a, b, c)
    assert torch.equal(c, a + b)
