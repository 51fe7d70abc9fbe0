"""Every example for metal, through the whole runtime, as emulated source: at small and ragged sizes, against numpy.

Apple's compiler is not run: what is tested is the text's meaning as we read Apple's specification.
"""

from __future__ import annotations

from typing import Any

import conv2d
import dequant_gemm
import flash_attention
import gemm_relu
import gemv
import layer_norm
import matmul
import numpy as np
import pytest
import softmax
import split_k
import vector_add

pytestmark = pytest.mark.usefixtures("mac")


def random(*shape: int, dtype: str = "float16", seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def close(got: Any, want: Any, tolerance: float = 5e-3) -> None:
    got = np.asarray(got).astype(np.float64)
    assert got.shape == want.shape
    assert np.isfinite(got).all()
    assert np.abs(got - want).max(initial=0) <= tolerance * max(float(np.abs(want).max(initial=0)), 1e-6)


def test_matmul() -> None:
    a, b, c = random(50, 33), random(33, 41), np.empty((50, 41), np.float16)
    matmul.matmul(50, 41, 33, 32, 32, 11)(a, b, c)
    close(c, a.astype(np.float32) @ b.astype(np.float32), 1e-2)


def test_gemm_relu() -> None:
    a, b = random(33, 40), random(40, 104)
    close(gemm_relu.gemm_relu(33, 104, 40, block_M=32, block_N=32)(a, b), gemm_relu.reference(a, b))


def test_vector_add() -> None:
    a, b = random(1333, dtype="float32"), random(1333, dtype="float32", seed=1)
    np.testing.assert_array_equal(vector_add.add(a, b), a + b)


def test_softmax() -> None:
    x = random(5, 229, dtype="float32") * 10
    close(softmax.softmax(5, 229)(x), softmax.reference(x), 1e-5)


def test_layer_norm() -> None:
    x, gamma, beta = (
        random(9, 104, dtype="float32"),
        random(104, dtype="float32"),
        random(104, dtype="float32", seed=1),
    )
    close(layer_norm.layer_norm(9, 104)(x, gamma, beta), layer_norm.reference(x, gamma, beta), 1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_flash_attention(causal: bool) -> None:
    q = random(1, 1, 33, 32)
    k, v = random(1, 1, 70, 32, seed=1), random(1, 1, 70, 32, seed=2)
    kernel = flash_attention.attention(1, 1, 33, 70, 32, causal=causal, block_M=32, block_N=32)
    close(kernel(q, k, v), flash_attention.reference(q, k, v, causal))


def test_split_k() -> None:
    a, b, c = random(33, 100), random(100, 40), np.zeros((33, 40), np.float32)
    split_k.split_k(33, 40, 100, splits=2, block_M=32, block_N=32)(a, b, c)
    close(c, split_k.reference(a, b), 1e-4)


def test_gemv() -> None:
    w, x = random(65, 104), random(104)
    close(gemv.gemv(65, 104)(w, x), gemv.reference(w, x), 1e-4)


def test_dequantised_gemm() -> None:
    rng = np.random.default_rng(0)
    a, weights = random(17, 64), rng.integers(-8, 8, (64, 40))
    scales = rng.uniform(0.5, 1.5, (2, 40)).astype(np.float16)
    got = dequant_gemm.dequant_gemm(17, 40, 64)(a, dequant_gemm.pack(weights), scales)
    close(got, dequant_gemm.reference(a, weights, scales), 1e-4)


def test_convolution() -> None:
    image, weight = random(1, 9, 7, 3), random(3, 3, 3, 5)
    kernel = conv2d.conv2d(1, 3, 9, 7, 5, 3, 2, 1, 1)
    close(kernel(image, weight), conv2d.reference(image, weight, 2, 1, 1), 1e-4)
