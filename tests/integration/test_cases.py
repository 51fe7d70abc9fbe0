"""Small kernels that once went wrong in a public project (tile-ai/tilelang's issue numbers), each the right value here.

Where a backend would need threads, the plan for a GPU target is made as well: it must exist and be sound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.hardware import Target
from tile_core.inference.infer import infer
from tile_core.language.trace import PrimFunc
from tile_core.registry import registry

GPUS = ("cuda:sm_80", "cuda:sm_90a", "rocm:gfx942")


@pytest.fixture(params=["cpu", "interpreter"])
def target(request: pytest.FixtureRequest) -> Iterator[str]:
    with tile.target(request.param):
        yield request.param


def run(kernel: PrimFunc, *arguments: Any) -> None:
    """Run a kernel in place, after plans for GPUs were made from the same program."""
    for name in GPUS:
        wanted = Target.parse(name)
        plan = infer(kernel.program, registry().get(wanted.backend).info(wanted))
        assert plan.graph.nodes
    tile.compile(kernel)(*arguments)


def random(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32).astype(dtype)


def f32(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32)


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("trips", [1, 2])
def test_2566_pipeline_of_one_iteration(target: str, stages: int, trips: int) -> None:
    K, N, BN = 64 * trips, 512, 128  # three tiles of it fit into 64 KB, all that some targets have

    @T.prim_func
    def kernel(W: T.Tensor((K, N), "bfloat16"), X: T.Tensor((K,), "bfloat16"), Y: T.Tensor((N,))):
        with T.Kernel(N // BN, threads=256) as bx:
            w, x = T.alloc_shared((64, BN), "bfloat16"), T.alloc_shared((64,), "bfloat16")
            product = T.alloc_fragment((64, BN), "float32")
            acc = T.alloc_fragment((BN,), "float32")
            T.clear(acc)
            for k in T.Pipelined(trips, num_stages=stages):
                T.copy(W[k * 64, bx * BN], w)
                T.copy(X[k * 64], x)
                for i, j in T.Parallel(64, BN):
                    product[i, j] = T.float32(w[i, j]) * T.float32(x[i])
                T.reduce_sum(product, acc, dim=0, clear=False)
            T.copy(acc, Y[bx * BN])

    w, x, y = (
        random(K, N, dtype=ml_dtypes.bfloat16),
        random(K, dtype=ml_dtypes.bfloat16),
        np.zeros(N, np.float32),
    )
    run(kernel, w, x, y)
    np.testing.assert_allclose(y, f32(x) @ f32(w), rtol=1e-4, atol=1e-4)


def gemm(
    M: int, N: int, K: int, bm: int, bn: int, bk: int, threads: int, stages: int, dtype: str
) -> PrimFunc:
    @T.prim_func
    def kernel(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N))):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=threads) as (bx, by):
            a, b = T.alloc_shared((bm, bk), dtype), T.alloc_shared((bk, bn), dtype)
            c = T.alloc_fragment((bm, bn), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                T.copy(A[by * bm, k * bk], a)
                T.copy(B[k * bk, bx * bn], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * bm, bx * bn])

    return kernel


@pytest.mark.parametrize(
    ("sizes", "blocks", "threads", "stages"),
    [
        pytest.param((128, 128, 33), (128, 128, 32), 128, 2, id="2365: a tail of one in K"),
        pytest.param((16, 104, 16), (16, 104, 16), 384, 0, id="2537: more warps than tiles"),
        pytest.param(
            (64, 40, 24), (64, 40, 24), 128, 2, id="2381: 24 and 40 are no multiples of the instruction"
        ),
        pytest.param((8, 16, 32), (8, 16, 32), 128, 1, id="2593: fewer rows than the instruction"),
        pytest.param((128, 128, 0), (64, 64, 32), 128, 2, id="1697: no K at all"),
        pytest.param((130, 70, 65), (64, 64, 32), 48, 3, id="48 threads, all ragged"),
    ],
)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gemm_tiles(target: str, sizes: Any, blocks: Any, threads: int, stages: int, dtype: str) -> None:
    M, N, K = sizes
    type = np.float16 if dtype == "float16" else ml_dtypes.bfloat16
    a, b, c = random(M, K, dtype=type), random(K, N, dtype=type), np.full((M, N), np.nan, np.float32)
    kernel = gemm(M, N, K, *blocks, threads, stages, dtype)
    if threads == 48:
        tile.compile(kernel)(a, b, c)
    else:
        run(kernel, a, b, c)
    np.testing.assert_allclose(c, f32(a) @ f32(b), rtol=1e-3, atol=1e-3)


def test_2617_clear_accum_with_operands_in_registers(target: str) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64))):
        with T.Kernel(1, threads=128):
            a, b = T.alloc_fragment((64, 64), "float16"), T.alloc_fragment((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.fill(c, 100)
            T.gemm(a, b, c, clear_accum=True)
            T.copy(c, C)

    a, b, c = (
        random(64, 64, dtype=np.float16),
        random(64, 64, dtype=np.float16, seed=1),
        np.zeros((64, 64), np.float32),
    )
    run(kernel, a, b, c)
    np.testing.assert_allclose(c, f32(a) @ f32(b), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_1853_transposed_a_with_a_narrow_b(target: str, dtype: str) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), dtype), B: T.Tensor((64, 16), dtype), C: T.Tensor((64, 16))):
        with T.Kernel(1, threads=256):
            a, b = T.alloc_shared((64, 64), dtype), T.alloc_shared((64, 16), dtype)
            c = T.alloc_fragment((64, 16), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, transpose_A=True, clear_accum=True)
            T.copy(c, C)

    type = np.float16 if dtype == "float16" else ml_dtypes.bfloat16
    a, b, c = random(64, 64, dtype=type), random(64, 16, dtype=type), np.zeros((64, 16), np.float32)
    run(kernel, a, b, c)
    np.testing.assert_allclose(c, f32(a).T @ f32(b), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("n", [48, 40, 100, 229])
def test_2542_reduction_over_a_width_that_is_no_power_of_two(target: str, n: int) -> None:
    @T.prim_func
    def kernel(X: T.Tensor((1, n)), S: T.Tensor((1,)), M: T.Tensor((1,))):
        with T.Kernel(1, threads=48):
            x = T.alloc_fragment((1, n), "float32")
            s, m = T.alloc_fragment((1,), "float32"), T.alloc_fragment((1,), "float32")
            T.copy(X, x)
            T.reduce_sum(x, s, dim=1)
            T.reduce_max(x, m, dim=1)
            T.copy(s, S)
            T.copy(m, M)

    x = np.arange(1, n + 1, dtype=np.float32)[None]
    s, m = np.zeros(1, np.float32), np.zeros(1, np.float32)
    tile.compile(kernel)(x, s, m)
    assert s[0] == n * (n + 1) / 2
    assert m[0] == n


def test_2408_matrix_times_vector_in_blocks_of_48(target: str) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 96)), X: T.Tensor((96,)), Y: T.Tensor((32,))):
        with T.Kernel(1, threads=128):
            a, x = T.alloc_fragment((32, 48), "float32"), T.alloc_fragment((48,), "float32")
            y = T.alloc_fragment((32,), "float32")
            T.clear(y)
            for k in T.serial(2):
                T.copy(A[0:32, k * 48 : (k + 1) * 48], a)
                T.copy(X[k * 48], x)
                for i, j in T.Parallel(32, 48):
                    a[i, j] *= x[j]
                T.reduce_sum(a, y, dim=1, clear=False)
            T.copy(y, Y)

    a, x, y = random(32, 96), random(96), np.zeros(32, np.float32)
    run(kernel, a, x, y)
    np.testing.assert_allclose(y, a @ x, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_2523_cumsum_on_a_slice(target: str, reverse: bool, dim: int) -> None:
    @T.prim_func
    def kernel(X: T.Tensor((32, 128))):
        with T.Kernel(1, threads=96):
            big = T.alloc_shared((32, 128), "float32")
            T.copy(X, big)
            T.cumsum(big[0:32, 0:64], dim=dim, reverse=reverse)
            T.copy(big, X)

    x = random(32, 128)
    expected = x.copy()
    part = x[:, :64]
    expected[:, :64] = np.flip(np.cumsum(np.flip(part, dim), dim), dim) if reverse else np.cumsum(part, dim)
    run(kernel, x)
    np.testing.assert_allclose(x, expected, rtol=1e-4, atol=1e-4)


def test_2394_broadcast_by_48_columns(target: str) -> None:
    @T.prim_func
    def kernel(D: T.Tensor((48,)), Y: T.Tensor((4, 48))):
        with T.Kernel(1, threads=128):
            d, x = T.alloc_fragment((48,), "float32"), T.alloc_fragment((4, 48), "float32")
            T.copy(D, d)
            for i, j in T.Parallel(4, 48):
                x[i, j] = d[j] * 2
            T.copy(x, Y)

    d, y = random(48), np.zeros((4, 48), np.float32)
    run(kernel, d, y)
    np.testing.assert_array_equal(y, np.broadcast_to(d * 2, (4, 48)))


@pytest.mark.parametrize(("n", "shift"), [(128, 1), (128, 37), (48, 5), (229, 1)])
def test_2948_rotation_of_a_fragment(target: str, n: int, shift: int) -> None:
    @T.prim_func
    def kernel(X: T.Tensor((n,)), Y: T.Tensor((n,))):
        with T.Kernel(1, threads=128):
            f = T.alloc_fragment((n,), "float32")
            T.copy(X, f)
            for i in T.Parallel(n):
                Y[i] = f[(i + shift) % n]

    x, y = random(n), np.zeros(n, np.float32)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, np.roll(x, -shift))


@pytest.mark.parametrize(("first", "last"), [(3, 11), (0, 32), (31, 32), (5, 6)])
def test_2942_fill_of_a_slice(target: str, first: int, last: int) -> None:
    @T.prim_func
    def kernel(X: T.Tensor((32, 64)), Y: T.Tensor((32, 64))):
        with T.Kernel(1, threads=128):
            f = T.alloc_fragment((32, 64), "float32")
            T.copy(X, f)
            T.fill(f[first:last, :], 7)
            T.copy(f, Y)

    x, y = random(32, 64), np.zeros((32, 64), np.float32)
    expected = x.copy()
    expected[first:last] = 7
    run(kernel, x, y)
    np.testing.assert_array_equal(y, expected)


def test_2957_a_small_loop_does_not_pin_a_large_fragment(target: str) -> None:
    @T.prim_func
    def kernel(X: T.Tensor((64,)), Y: T.Tensor((256,))):
        with T.Kernel(1, threads=128):
            f = T.alloc_fragment((256,), "float32")
            T.fill(f, 1)
            for i in T.Parallel(64):
                f[i] = X[i]
            for i in T.Parallel(256):
                Y[i] = f[i]

    x, y = random(64), np.zeros(256, np.float32)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, np.concatenate([x, np.ones(192, np.float32)]))


def test_2581_tile_with_padded_columns(target: str) -> None:
    @T.prim_func
    def kernel(X: T.Tensor((32, 64), "float16"), Y: T.Tensor((32, 64), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((32, 72), "float16")
            T.copy(X, s[:, :64])
            T.copy(s[:, :64], Y)

    x, y = random(32, 64, dtype=np.float16), np.zeros((32, 64), np.float16)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, x)


def test_2609_view_of_another_type(target: str) -> None:
    @T.prim_func
    def kernel(
        A: T.Tensor((64, 64), "bfloat16"),
        C: T.Tensor((64, 64)),
        W: T.Tensor((32, 64)),
        Y: T.Tensor((64, 64), "bfloat16"),
    ):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "bfloat16")
            wide = T.view(s, (32, 64), "float32")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, s)
            T.gemm(s, s, c, clear_accum=True)
            T.copy(c, C)
            T.copy(wide, W)
            T.fill(s, 0)
            T.copy(W, wide)
            T.copy(s, Y)

    a = random(64, 64, dtype=ml_dtypes.bfloat16)
    c, w, y = (
        np.zeros((64, 64), np.float32),
        np.zeros((32, 64), np.float32),
        np.zeros((64, 64), ml_dtypes.bfloat16),
    )
    run(kernel, a, c, w, y)
    np.testing.assert_allclose(c, f32(a) @ f32(a), rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(w.view(np.uint32), a.view(np.uint32).reshape(32, 64))
    np.testing.assert_array_equal(y, a)


def test_float_edges(target: str) -> None:
    """#2638, #2944, #3024, #2614, #2383."""

    @T.prim_func
    def kernel(X: T.Tensor((4,)), Y: T.Tensor((8,)), E: T.Tensor((2,), "float8_e5m2"), P: T.Tensor((3,))):
        with T.Kernel(1):
            Y[0] = X[0] * 0.0
            Y[1] = X[0] - X[0]
            Y[2] = T.clamp(X[1], -1, 1)
            Y[3] = T.clamp(X[0], -1, 1)
            Y[4] = T.max(X[1], X[2])
            Y[5] = T.min(X[2], X[1])
            Y[6] = X[2] / 0.0
            Y[7] = T.if_then_else(T.isnan(X[1]), 1.0, 0.0)
            E[0] = T.cast(X[0], "float8_e5m2")
            E[1] = T.cast(X[3], "float8_e5m2")
            P[0] = T.pow(X[2], 0)
            P[1] = T.pow(X[2], -1)
            P[2] = T.pow(X[2], 3)

    x = np.array([np.inf, np.nan, 2.0, 1e6], np.float32)
    y, p = np.zeros(8, np.float32), np.zeros(3, np.float32)
    e = np.zeros(2, ml_dtypes.float8_e5m2)
    tile.compile(kernel)(x, y, e, p)
    assert np.isnan(y[:3]).all()
    np.testing.assert_array_equal(y[3:], [1, 2, 2, np.inf, 1])
    assert np.isposinf(f32(e)).all()
    np.testing.assert_allclose(p, [1, 0.5, 8], rtol=1e-6)


def test_exp_of_bfloat16(target: str) -> None:
    @T.prim_func
    def kernel(X: T.Tensor((512,), "bfloat16"), Y: T.Tensor((512,), "bfloat16")):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(512):
                Y[i] = T.exp(X[i])

    x = np.linspace(-20, 20, 512, dtype=np.float32).astype(ml_dtypes.bfloat16)
    y = np.zeros(512, ml_dtypes.bfloat16)
    run(kernel, x, y)
    exact = np.exp(f32(x))
    assert np.abs(y.view(np.int16).astype(int) - exact.astype(ml_dtypes.bfloat16).view(np.int16)).max() <= 1


@pytest.mark.parametrize(
    ("dtype", "values", "expected"), [("int8", [25] * 7 + [27], -54), ("bfloat16", [5.125] * 8, 41.0)]
)
def test_2628_reduction_in_a_narrow_type(
    target: str, dtype: str, values: list[float], expected: float
) -> None:
    @T.prim_func
    def kernel(X: T.Tensor((1, 8), dtype), Y: T.Tensor((1,), dtype)):
        with T.Kernel(1, threads=32):
            x, y = T.alloc_fragment((1, 8), dtype), T.alloc_fragment((1,), dtype)
            T.copy(X, x)
            T.reduce_sum(x, y, dim=1)
            T.copy(y, Y)

    type = np.int8 if dtype == "int8" else ml_dtypes.bfloat16
    x, y = np.array([values], np.float32).astype(type), np.zeros(1, type)
    run(kernel, x, y)
    assert float(y[0]) == expected


@pytest.mark.parametrize("stages", [0, 1, 2, 3])
def test_3031_scratch_loaded_twice_in_one_iteration(target: str, stages: int) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 64)), B: T.Tensor((4, 64)), C: T.Tensor((64,))):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32")
            acc = T.alloc_fragment((64,), "float32")
            T.clear(acc)
            for k in T.Pipelined(4, num_stages=stages):
                T.copy(A[k, :], s)
                for i in T.Parallel(64):
                    acc[i] += s[i]
                T.copy(B[k, :], s)
                for i in T.Parallel(64):
                    acc[i] += s[i] * 2
            T.copy(acc, C)

    a, b, c = random(4, 64), random(4, 64, seed=1), np.zeros(64, np.float32)
    run(kernel, a, b, c)
    np.testing.assert_allclose(c, a.sum(0) + 2 * b.sum(0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("stages", [0, 2, 3])
def test_2668_tile_read_and_then_overwritten(target: str, stages: int) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 64)), C: T.Tensor((4, 64))):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32")
            for k in T.Pipelined(4, num_stages=stages):
                T.copy(A[k, :], s)
                for i in T.Parallel(64):
                    s[i] = s[i] * 2 + 1
                T.copy(s, C[k, :])

    a, c = random(4, 64), np.zeros((4, 64), np.float32)
    run(kernel, a, c)
    np.testing.assert_allclose(c, a * 2 + 1, rtol=1e-6)


def test_1257_barrier_after_an_atomic_on_shared(target: str) -> None:
    @T.prim_func
    def kernel(C: T.Tensor((64,))):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            s = T.alloc_shared((64,), "float32")
            s[tx] = tx
            T.sync_threads()
            T.atomic_add(s[tx], 1)
            T.sync_threads()
            C[tx] = s[tx ^ 32]

    c = np.zeros(64, np.float32)
    run(kernel, c)
    np.testing.assert_array_equal(c, (np.arange(64) ^ 32) + 1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int32"])
@pytest.mark.parametrize("op", ["add", "max", "min"])
def test_2561_atomics_by_type(target: str, dtype: str, op: str) -> None:
    type = {"bfloat16": ml_dtypes.bfloat16}.get(dtype, dtype)
    atomic = {"add": T.atomic_add, "max": T.atomic_max, "min": T.atomic_min}[op]

    @T.prim_func
    def kernel(X: T.Tensor((64,), dtype), C: T.Tensor((4,), dtype)):
        with T.Kernel(64) as bx:
            atomic(C[bx % 4], X[bx])

    x = np.random.default_rng(0).integers(-20, 20, 64).astype(np.float32).astype(type)
    c = np.zeros(4, type)
    run(kernel, x, c)
    columns = f32(x).reshape(16, 4)
    fold = {
        "add": columns.sum(0),
        "max": np.maximum(columns.max(0), 0),
        "min": np.minimum(columns.min(0), 0),
    }[op]
    np.testing.assert_array_equal(f32(c), fold)


def test_2632_layout_that_sends_two_elements_to_one_place() -> None:
    from tile_core.layout.layout import Axis, Iter, Layout

    @T.prim_func
    def kernel(X: T.Tensor((64,))):
        with T.Kernel(1, threads=32):
            f = T.alloc_fragment((64,), "float32")
            T.annotate_layout({f: Layout((64,), (Iter(2, 0, Axis.REGISTER), Iter(32, 1, Axis.THREAD)))})
            T.copy(X, f)
            T.copy(f, X)

    wanted = Target.parse("cuda:sm_80")
    with pytest.raises(tile.KernelError, match="f"):
        infer(kernel.program, registry().get("cuda").info(wanted))


def test_3012_reshape_shares_storage(target: str) -> None:
    @T.prim_func
    def kernel(X: T.Tensor((8, 16)), Y: T.Tensor((4, 32))):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((8, 16), "float32")
            T.copy(X, s)
            T.copy(T.reshape(s, (4, 32)), Y)

    x, y = random(8, 16), np.zeros((4, 32), np.float32)
    run(kernel, x, y)
    np.testing.assert_array_equal(y, x.reshape(4, 32))


def test_2567_attention_with_a_ragged_length(target: str) -> None:
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
    import flash_attention

    q, k, v = (random(1, 1, 250, 32, dtype=np.float16, seed=n) for n in range(3))
    got = flash_attention.attention(1, 1, 250, 250, 32, causal=True)(q, k, v)
    assert np.abs(f32(got) - flash_attention.reference(q, k, v, True)).max() < 5e-3
    assert not math.isnan(float(f32(got).sum()))
