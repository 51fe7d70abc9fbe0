"""What may be passed to a kernel, and the error for everything else."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True, params=["cpu", "interpreter"])
def target(request: pytest.FixtureRequest) -> Iterator[None]:
    with tile.target(request.param):
        yield


@tile.jit(out_idx=[-1])
def scaled(M, N, dtype="float32"):
    @T.prim_func
    def kernel(X: T.Tensor((M, N), dtype), factor: T.float32, Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, 4), threads=32) as bx:
            tile_ = T.alloc_fragment((4, N), dtype)
            T.copy(X[bx * 4, 0], tile_)
            for i, j in T.Parallel(4, N):
                tile_[i, j] = T.cast(tile_[i, j] * factor, dtype)
            T.copy(tile_, Y[bx * 4, 0])

    return kernel


class OnlyDLPack:
    """A tensor of a library that is known by DLPack alone."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **_: object) -> object:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_numpy() -> None:
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    y = scaled(6, 2)(x, 2.0)
    assert isinstance(y, np.ndarray)
    np.testing.assert_array_equal(y, x * 2)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_torch(dtype: str) -> None:
    x = torch.arange(12, dtype=getattr(torch, dtype)).reshape(6, 2)
    y = scaled(6, 2, dtype)(x, 2.0)
    assert isinstance(y, torch.Tensor)
    assert y.dtype == x.dtype
    assert torch.equal(y, x * 2)


def test_torch_that_requires_grad() -> None:
    x = torch.ones(6, 2, requires_grad=True)
    assert torch.equal(scaled(6, 2)(x, 3.0), torch.full((6, 2), 3.0))


def test_dlpack_gives_numpy_back() -> None:
    x = np.ones((6, 2), np.float32)
    y = scaled(6, 2)(OnlyDLPack(x), 2.0)
    np.testing.assert_array_equal(np.asarray(y), x * 2)


def test_a_scalar_of_numpy_or_torch() -> None:
    x = np.ones((6, 2), np.float32)
    assert scaled(6, 2)(x, np.float32(2))[0, 0] == 2
    assert scaled(6, 2)(x, torch.tensor(3.0))[0, 0] == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones((6, 2)), 1.0), "X is float64, the kernel takes float32"),
        ((np.ones((6,), np.float32), 1.0), "X has 1 dimensions, the kernel takes 2: (6, 2)"),
        ((np.ones((6, 3), np.float32), 1.0), "dimension 1 of X is 3, the kernel takes 2"),
        ((np.ones((2, 6), np.float32).T, 1.0), "X is not contiguous"),
        ((np.ones((6, 2), np.float32),), "takes 2 arguments (X, factor), 1 are given"),
        ((1.0, 1.0), "X is float, a tensor is needed"),
        ((np.ones((6, 2), np.float32), "two"), "factor is 'two', a number is needed"),
    ],
)
def test_bad_arguments(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(tile.ArgumentError) as caught:
        scaled(6, 2)(*arguments)
    assert message in str(caught.value)


def test_tensor_on_another_device() -> None:
    x = torch.ones(6, 2, device="meta")
    with pytest.raises(tile.TileError, match="meta"):
        scaled(6, 2)(x, 1.0)


def test_read_only_output() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((4,))):
        with T.Kernel(1):
            C[0] = 1.0

    c = np.zeros(4, np.float32)
    c.flags.writeable = False
    with pytest.raises(tile.ArgumentError, match="C is written by the kernel, but it is read-only"):
        tile.compile(kernel)(c)


def test_empty_tensors_and_empty_grids() -> None:
    assert scaled(0, 2)(np.ones((0, 2), np.float32), 1.0).shape == (0, 2)
    assert scaled(6, 0)(np.ones((6, 0), np.float32), 1.0).shape == (6, 0)


def test_gemm_over_no_elements_gives_zeros() -> None:
    @tile.jit(out_idx=[2])
    def matmul(M, N, K):
        @T.prim_func
        def kernel(A: T.Tensor((M, K)), B: T.Tensor((K, N)), C: T.Tensor((M, N))):
            with T.Kernel(1):
                a, b = T.alloc_shared((16, 8), "float32"), T.alloc_shared((8, 16), "float32")
                c = T.alloc_fragment((16, 16), "float32")
                T.clear(c)
                for k in T.Pipelined(T.ceildiv(K, 8), num_stages=2):
                    T.copy(A[0, k * 8], a)
                    T.copy(B[k * 8, 0], b)
                    T.gemm(a, b, c)
                T.copy(c, C)

        return kernel

    c = matmul(16, 16, 0)(np.zeros((16, 0), np.float32), np.zeros((0, 16), np.float32))
    assert (c == 0).all()


def test_dynamic_dimensions_share_a_kernel() -> None:
    m = T.dynamic("m")

    @tile.jit(out_idx=[1])
    def double(N):
        @T.prim_func
        def kernel(X: T.Tensor((m, N)), Y: T.Tensor((m, N))):
            with T.Kernel(T.ceildiv(m, 8), threads=32) as bx:
                s = T.alloc_fragment((8, N), "float32")
                T.copy(X[bx * 8, 0], s)
                for i, j in T.Parallel(8, N):
                    s[i, j] *= 2
                T.copy(s, Y[bx * 8, 0])

        return kernel

    kernel = double(5)
    for size in (1, 8, 33):
        x = np.random.default_rng(size).standard_normal((size, 5)).astype(np.float32)
        np.testing.assert_array_equal(kernel(x), x * 2)
    with pytest.raises(tile.ArgumentError, match="dimension 1 of X is 4"):
        kernel(np.ones((3, 4), np.float32))


def test_two_tensors_disagree_about_a_dimension() -> None:
    n = T.dynamic("n")

    @T.prim_func
    def kernel(A: T.Tensor((n,)), B: T.Tensor((n,))):
        with T.Kernel(n) as bx:
            B[bx] = A[bx]

    with pytest.raises(tile.ArgumentError, match="dimension 0 of B is 3, but n is 4 in A"):
        tile.compile(kernel)(np.ones(4, np.float32), np.ones(3, np.float32))


def test_strided_tensors() -> None:
    @T.prim_func
    def kernel(X: T.StridedTensor((4, 4), (8, 2), "float32"), Y: T.Tensor((4, 4))):
        with T.Kernel(1):
            s = T.alloc_shared((4, 4), "float32")
            T.copy(X, s)
            T.copy(s, Y)

    base = np.arange(32, dtype=np.float32).reshape(4, 8)
    y = np.zeros((4, 4), np.float32)
    tile.compile(kernel)(base[:, ::2], y)
    np.testing.assert_array_equal(y, base[:, ::2])
    with pytest.raises(tile.ArgumentError, match="stride 0 of X is 4"):
        tile.compile(kernel)(np.ones((4, 4), np.float32), y)


def test_symbolic_strides() -> None:
    s = T.dynamic("s")

    @T.prim_func
    def kernel(X: T.StridedTensor((4, 4), (s, 1), "float32"), S: T.Tensor((s,)), Y: T.Tensor((4, 4))):
        with T.Kernel(1):
            t = T.alloc_shared((4, 4), "float32")
            T.copy(X, t)
            T.copy(t, Y)

    base = np.arange(40, dtype=np.float32).reshape(4, 10)
    y = np.zeros((4, 4), np.float32)
    tile.compile(kernel)(base[:, :4], np.zeros(10, np.float32), y)
    np.testing.assert_array_equal(y, base[:, :4])


def test_pointer_parameters() -> None:
    @T.prim_func
    def kernel(p: T.ptr("float32"), n: T.int32, Y: T.Tensor((4,))):
        with T.Kernel(1):
            x = T.make_tensor(p, (n,), "float32")
            for i in T.serial(4):
                Y[i] = x[i] + 1

    x, y = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    kernel_ = tile.compile(kernel)
    kernel_(x, 4, y)
    np.testing.assert_array_equal(y, x + 1)
    kernel_(x.ctypes.data, 4, y)
    np.testing.assert_array_equal(y, x + 1)


def test_unknown_option() -> None:
    with pytest.raises(tile.KernelError, match="did you mean 'out_idx'"):
        tile.jit(out_indx=[0])


def test_factory_that_returns_something_else() -> None:
    @tile.jit
    def nothing():
        return 3

    with pytest.raises(tile.KernelError, match="returned int"):
        nothing()


def test_out_idx_out_of_range() -> None:
    with pytest.raises(tile.KernelError, match="out_idx 7 names no tensor parameter"):
        tile.compile(scaled.function(2, 2), out_idx=7)


def test_workspace() -> None:
    @tile.jit(out_idx=[1])
    def two_steps(N):
        @T.prim_func
        def kernel(X: T.Tensor((N,)), Y: T.Tensor((N,))):
            work = T.alloc_global((N,), "float32")
            with T.Kernel(N) as bx:
                work[bx] = X[bx] * 2
            with T.Kernel(N) as bx:
                Y[bx] = work[N - 1 - bx] + 1

        return kernel

    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(two_steps(5)(x), x[::-1] * 2 + 1)


@tile.jit
def added(A, B, C):
    N = T.const("N")
    A: T.Tensor((N,), "float32")
    B: T.Tensor((N,), "float32")
    C: T.Tensor((N,), "float32")
    with T.Kernel(N) as bx:
        C[bx] = A[bx] + B[bx]


def test_libraries_may_be_mixed_on_the_host() -> None:
    x, y = np.arange(4, dtype=np.float32), torch.zeros(4)
    added(x, torch.from_numpy(x), y)
    np.testing.assert_array_equal(y.numpy(), 2 * x)


def test_arguments_of_a_factory_are_named() -> None:
    with pytest.raises(
        tile.ArgumentError, match=r"missing a required argument: 'N'(.|\n)*it is scaled\(M, N"
    ):
        scaled(6)


def test_a_workspace_whose_extent_follows_from_a_dimension() -> None:
    n = T.dynamic("n")

    @T.prim_func
    def shifted(A: T.Tensor((n,), "float32")):
        W = T.alloc_global((T.truncdiv(n, 2),), "float32")
        with T.Kernel(1):
            for i in T.serial(T.truncdiv(n, 2)):
                W[i] = A[i]
            for i in T.serial(T.truncdiv(n, 2)):
                A[i + T.truncdiv(n, 2)] = W[i]

    x = np.arange(6, dtype=np.float32)
    tile.compile(shifted)(x)
    assert x.tolist() == [0, 1, 2, 0, 1, 2]
