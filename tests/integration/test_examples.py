"""Every example on the ``cpu`` target and in the interpreter, at even and at ragged sizes, against numpy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tile_core as tile

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import conv2d
import dequant_gemm
import flash_attention
import gemm_relu
import gemv
import layer_norm
import matmul
import softmax
import split_k
import vector_add

TARGETS = ("cpu", "interpreter")


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> Iterator[str]:
    with tile.target(request.param):
        yield request.param


def random(*shape: int, dtype: str = "float16", seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def close(got: Any, want: np.ndarray, tolerance: float = 5e-3) -> None:
    """Errors relative to the largest value: float16 results have 11 bits."""
    got = np.asarray(got).astype(np.float64)
    assert got.shape == want.shape
    assert np.isfinite(got).all()
    scale = max(float(np.abs(want).max(initial=0)), 1e-6)
    assert np.abs(got - want).max(initial=0) <= tolerance * scale


@pytest.mark.parametrize(
    ("m", "n", "k", "blocks"),
    [
        (64, 64, 64, (32, 32, 32)),
        (1, 104, 33, (16, 32, 11)),
        (127, 33, 66, (64, 32, 33)),
        (33, 1, 32, (32, 16, 16)),
    ],
)
def test_matmul_with_the_least_written(
    target: str, m: int, n: int, k: int, blocks: tuple[int, int, int]
) -> None:
    a, b, c = random(m, k), random(k, n), np.empty((m, n), np.float16)
    matmul.matmul(m, n, k, *blocks)(a, b, c)
    close(c, a.astype(np.float32) @ b.astype(np.float32), 1e-2)


@pytest.mark.parametrize(
    ("m", "n", "k"), [(64, 64, 64), (1, 104, 33), (33, 104, 33), (127, 65, 96), (128, 128, 1), (5, 7, 0)]
)
def test_gemm_relu(target: str, m: int, n: int, k: int) -> None:
    a, b = random(m, k), random(k, n)
    close(gemm_relu.gemm_relu(m, n, k)(a, b), gemm_relu.reference(a, b))


@pytest.mark.parametrize("n", [0, 1, 33, 127, 1024, 5000])
def test_vector_add(target: str, n: int) -> None:
    a, b = random(n, dtype="float32"), random(n, dtype="float32", seed=1)
    np.testing.assert_array_equal(vector_add.add(a, b), a + b)


@pytest.mark.parametrize(("m", "n"), [(16, 128), (1, 229), (33, 104), (127, 1)])
def test_softmax(target: str, m: int, n: int) -> None:
    x = random(m, n, dtype="float32") * 10
    close(softmax.softmax(m, n)(x), softmax.reference(x), 1e-5)


@pytest.mark.parametrize(("m", "n"), [(8, 128), (1, 229), (33, 104)])
def test_layer_norm(target: str, m: int, n: int) -> None:
    x, gamma, beta = (
        random(m, n, dtype="float32"),
        random(n, dtype="float32"),
        random(n, dtype="float32", seed=1),
    )
    close(layer_norm.layer_norm(m, n)(x, gamma, beta), layer_norm.reference(x, gamma, beta), 1e-5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("seq_q", "seq_kv", "dim"), [(64, 64, 32), (33, 127, 32), (1, 104, 16), (70, 33, 32)]
)
def test_flash_attention(target: str, causal: bool, seq_q: int, seq_kv: int, dim: int) -> None:
    q = random(1, 2, seq_q, dim)
    k, v = random(1, 2, seq_kv, dim, seed=1), random(1, 2, seq_kv, dim, seed=2)
    got = flash_attention.attention(1, 2, seq_q, seq_kv, dim, causal=causal)(q, k, v)
    close(got, flash_attention.reference(q, k, v, causal))


@pytest.mark.parametrize(("m", "n", "k", "splits"), [(64, 64, 256, 4), (33, 104, 33, 2), (1, 16, 200, 3)])
def test_split_k(target: str, m: int, n: int, k: int, splits: int) -> None:
    a, b, c = random(m, k), random(k, n), np.zeros((m, n), np.float32)
    split_k.split_k(m, n, k, splits=splits)(a, b, c)
    close(c, split_k.reference(a, b), 1e-4)


@pytest.mark.parametrize(("n", "k"), [(64, 256), (1, 33), (127, 104)])
def test_gemv(target: str, n: int, k: int) -> None:
    w, x = random(n, k), random(k)
    close(gemv.gemv(n, k)(w, x), gemv.reference(w, x), 1e-4)


@pytest.mark.parametrize(("m", "n", "k"), [(32, 64, 128), (1, 104, 96), (33, 64, 33)])
def test_dequantised_gemm(target: str, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(0)
    a, weights = random(m, k), rng.integers(-8, 8, (k, n))
    scales = rng.uniform(0.5, 1.5, (-(-k // 32), n)).astype(np.float16)
    got = dequant_gemm.dequant_gemm(m, n, k)(a, dequant_gemm.pack(weights), scales)
    close(got, dequant_gemm.reference(a, weights, scales), 1e-4)


@dataclass(frozen=True)
class Conv:
    n: int
    c: int
    h: int
    w: int
    f: int
    r: int
    stride: int = 1
    pad: int = 1
    dilation: int = 1


@pytest.mark.parametrize(
    "s",
    [
        Conv(1, 8, 8, 8, 32, 3),
        Conv(2, 3, 9, 7, 5, 3, 2, 1),
        Conv(1, 4, 9, 9, 8, 3, 1, 0, 2),
        Conv(1, 8, 5, 5, 8, 1, 1, 0),
    ],
)
def test_convolution(target: str, s: Conv) -> None:
    image, weight = random(s.n, s.h, s.w, s.c), random(s.r, s.r, s.c, s.f)
    kernel = conv2d.conv2d(s.n, s.c, s.h, s.w, s.f, s.r, s.stride, s.pad, s.dilation)
    close(kernel(image, weight), conv2d.reference(image, weight, s.stride, s.pad, s.dilation), 1e-4)


MAINS: tuple[Callable[[], None], ...] = (
    conv2d.main,
    dequant_gemm.main,
    flash_attention.main,
    gemm_relu.main,
    gemv.main,
    layer_norm.main,
    matmul.main,
    softmax.main,
    split_k.main,
    vector_add.main,
)


@pytest.mark.parametrize("main", MAINS, ids=lambda f: f.__module__)
def test_main_runs(main: Callable[[], None], capsys: pytest.CaptureFixture[str]) -> None:
    main()
    assert "error" in capsys.readouterr().out
