"""Kernels without T.Kernel: what is inferred, and what is refused because it has two readings or none."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core.language as T
from tile_core.errors import KernelError
from tile_core.inference.complete import complete
from tile_core.interpreter import run
from tile_core.language.trace import PrimFunc
from tile_core.program.text import text


def result(kernel: PrimFunc, *arguments: np.ndarray) -> None:
    run(complete(kernel.program).program, list(arguments))


def refused(kernel: PrimFunc) -> str:
    with pytest.raises(KernelError) as caught:
        complete(kernel.program)
    assert caught.value.span is not None
    assert caught.value.span.file == __file__
    return str(caught.value)


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def matmul(m, n, k, bm, bn, bk, trips=None):
    trips = -(-k // bk) if trips is None else trips

    @T.prim_func
    def kernel(A: T.Tensor((m, k)), B: T.Tensor((k, n)), C: T.Tensor((m, n))):
        a = T.alloc_shared((bm, bk), "float32")
        b = T.alloc_shared((bk, bn), "float32")
        c = T.alloc_fragment((bm, bn), "float32")
        with T.Pipelined(trips, num_stages=3):
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c)
        T.copy(c, C)

    return kernel


@pytest.mark.parametrize(
    "sizes",
    [
        (64, 64, 64, 32, 32, 16),
        (1, 104, 33, 16, 16, 16),
        (33, 7, 5, 8, 8, 8),
        (64, 64, 64, 64, 64, 64),
        (40, 24, 24, 8, 24, 24),
    ],
)
def test_matmul(sizes: tuple[int, ...]) -> None:
    m, n, k = sizes[:3]
    a, b, c = random(m, k), random(k, n), np.zeros((m, n), np.float32)
    result(matmul(*sizes), a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


def test_text_of_what_was_inferred() -> None:
    found = complete(matmul(64, 96, 32, 32, 48, 16).program)
    shown = text(found.program)
    assert "launch bx, by in (2, 2), threads (128):" in shown
    assert "fill(c, 0.0)" in shown
    assert "for k in pipelined(2, num_stages=3):" in shown
    assert "copy(A[by * 32 +: 32, k * 16 +: 16], a)" in shown
    assert "copy(c, C[by * 32 +: 32, bx * 48 +: 48])" in shown
    assert len(found.notes) == 4


def test_symbolic_sizes() -> None:
    m = T.dynamic("m")
    kernel = matmul(m, 24, 16, 8, 8, 8)
    for size in (1, 8, 21):
        a, b, c = random(size, 16), random(16, 24), np.zeros((size, 24), np.float32)
        result(kernel, a, b, c)
        np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


def test_a_loop_that_leaves_out_the_tail_is_refused() -> None:
    message = refused(matmul(64, 64, 33, 32, 32, 16, trips=2))
    assert "the loop runs 2 times, but 3 tiles cover dimension 1 of A = 33 in tiles of 16" in message
    assert "the last tile would be left out" in message
    assert "T.ceildiv" in message


def test_elementwise_and_row_reduction() -> None:
    @T.prim_func
    def kernel(X: T.Tensor((50, 24)), Y: T.Tensor((50,))):
        x = T.alloc_fragment((8, 24), "float32")
        y = T.alloc_fragment((8,), "float32")
        T.copy(X, x)
        for i, j in T.Parallel(8, 24):
            x[i, j] = x[i, j] * 2
        T.reduce_sum(x, y, dim=1)
        T.copy(y, Y)

    x, y = random(50, 24), np.zeros(50, np.float32)
    result(kernel, x, y)
    np.testing.assert_allclose(y, 2 * x.sum(axis=1), rtol=1e-4, atol=1e-4)


def test_two_products_with_a_tile_that_is_new_in_each_iteration() -> None:
    @T.prim_func
    def kernel(Q: T.Tensor((50, 16)), K: T.Tensor((70, 16)), V: T.Tensor((70, 16)), O: T.Tensor((50, 16))):
        q, k, v = (
            T.alloc_shared((16, 16), "float32"),
            T.alloc_shared((32, 16), "float32"),
            T.alloc_shared((32, 16), "float32"),
        )
        s, acc = T.alloc_fragment((16, 32), "float32"), T.alloc_fragment((16, 16), "float32")
        T.copy(Q, q)
        with T.Pipelined(T.ceildiv(70, 32), num_stages=2):
            T.copy(K, k)
            T.gemm(q, k, s, transpose_B=True)
            T.copy(V, v)
            T.gemm(s, v, acc)
        T.copy(acc, O)

    q, k, v, o = random(50, 16), random(70, 16), random(70, 16, seed=1), np.zeros((50, 16), np.float32)
    result(kernel, q, k, v, o)
    np.testing.assert_allclose(o, q @ k.T @ v, rtol=1e-3, atol=1e-3)


def test_loop_with_an_index_that_nothing_uses() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((8, 32)), B: T.Tensor((32, 8)), C: T.Tensor((8, 8))):
        a, b = T.alloc_shared((8, 8), "float32"), T.alloc_shared((8, 8), "float32")
        c = T.alloc_fragment((8, 8), "float32")
        for _ in T.Pipelined(4, num_stages=2):
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c)
        T.copy(c, C)

    a, b, c = random(8, 32), random(32, 8), np.zeros((8, 8), np.float32)
    result(kernel, a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


def test_batches_in_front_of_the_tiles() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((3, 20, 16)), B: T.Tensor((3, 16, 12)), C: T.Tensor((3, 20, 12))):
        a, b = T.alloc_shared((8, 16), "float32"), T.alloc_shared((16, 12), "float32")
        c = T.alloc_fragment((8, 12), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.gemm(a, b, c)
        T.copy(c, C)

    a, b, c = random(3, 20, 16), random(3, 16, 12), np.zeros((3, 20, 12), np.float32)
    result(kernel, a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


def test_batches_of_equal_size_are_refused() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((2, 2, 8)), C: T.Tensor((2, 2, 8))):
        a = T.alloc_shared((8,), "float32")
        T.copy(A, a)
        T.copy(a, C)

    assert "several dimensions have that size" in refused(kernel)


def test_split_accumulation_with_atomics() -> None:
    @T.prim_func
    def kernel(X: T.Tensor((40, 8)), Y: T.Tensor((40, 8))):
        x = T.alloc_fragment((8, 8), "float32")
        T.copy(X, x)
        T.atomic_add(Y, x)

    x, y = random(40, 8), random(40, 8, seed=1)
    expected = x + y
    result(kernel, x, y)
    np.testing.assert_allclose(y, expected, rtol=1e-6)


def test_two_readings_of_a_stored_dimension() -> None:
    @T.prim_func
    def kernel(X: T.Tensor((64, 128)), Y: T.Tensor((64, 128))):
        s = T.alloc_shared((64, 32), "float32")
        with T.Pipelined(4):
            T.copy(X, s)
            T.copy(s, Y)

    message = refused(kernel)
    assert "two readings are possible for dimension 1 of X = 128 in tiles of 32" in message
    assert "(1) this loop walks it" in message
    assert "(2) the grid walks it" in message


def test_two_loops_that_could_walk_one_dimension() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((8, 32)), B: T.Tensor((32, 8)), C: T.Tensor((8, 8))):
        a, b = T.alloc_shared((8, 8), "float32"), T.alloc_shared((8, 8), "float32")
        c = T.alloc_fragment((8, 8), "float32")
        with T.Pipelined(4), T.Pipelined(4):
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c)
        T.copy(c, C)

    assert "two loops could walk" in refused(kernel)


def test_accumulator_that_is_read_in_the_loop() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((8, 32)), B: T.Tensor((32, 8)), C: T.Tensor((8, 8))):
        a, b = T.alloc_shared((8, 8), "float32"), T.alloc_shared((8, 8), "float32")
        c, d = T.alloc_fragment((8, 8), "float32"), T.alloc_fragment((8, 8), "float32")
        T.clear(d)
        with T.Pipelined(4):
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c)
            for i, j in T.Parallel(8, 8):
                d[i, j] += c[i, j]
        T.copy(d, C)

    message = refused(kernel)
    assert "two readings are possible for the accumulator c" in message
    assert "(1) it adds up over the iterations; (2) it starts from zero in each" in message


def test_one_dimension_with_two_sizes() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 32)), B: T.Tensor((48, 64)), C: T.Tensor((64, 64))):
        a, b = T.alloc_shared((64, 16), "float32"), T.alloc_shared((16, 64), "float32")
        c = T.alloc_fragment((64, 64), "float32")
        with T.Pipelined(2):
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c)
        T.copy(c, C)

    assert "one dimension has two sizes in tensors" in refused(kernel)


def test_only_one_tile_is_read() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 32)), B: T.Tensor((32, 64)), C: T.Tensor((64, 64))):
        a, b = T.alloc_shared((64, 16), "float32"), T.alloc_shared((16, 64), "float32")
        c = T.alloc_fragment((64, 64), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.gemm(a, b, c)
        T.copy(c, C)

    assert "only one tile of dimension 1 of A = 32 in tiles of 16 is read" in refused(kernel)


def test_output_that_the_grid_does_not_cover() -> None:
    @T.prim_func
    def kernel(X: T.Tensor((64, 64)), Y: T.Tensor((64, 64)), Z: T.Tensor((64,))):
        x, z = T.alloc_fragment((16, 16), "float32"), T.alloc_fragment((16,), "float32")
        T.copy(X, x)
        T.reduce_sum(x, z, dim=1)
        T.copy(x, Y)
        T.copy(z, Z)

    assert "would write the same part of Z" in refused(kernel)


def test_loop_that_only_repeats() -> None:
    @T.prim_func
    def kernel(X: T.Tensor((16, 16)), Y: T.Tensor((16, 16))):
        x = T.alloc_fragment((16, 16), "float32")
        with T.Pipelined(3):
            T.copy(X, x)
        T.copy(x, Y)

    assert "nothing in it is a tile of something larger" in refused(kernel)


def test_elements_of_tensors_are_refused() -> None:
    @T.prim_func
    def kernel(X: T.Tensor((16,)), Y: T.Tensor((16,))):
        for i in T.Parallel(16):
            Y[i] = X[i]

    with pytest.raises(KernelError, match="single elements of the tensor"):
        complete(kernel.program)


def test_nothing_stored() -> None:
    @T.prim_func
    def kernel(X: T.Tensor((16,))):
        x = T.alloc_fragment((16,), "float32")
        T.copy(X, x)

    assert "stores nothing to a tensor" in refused(kernel)
