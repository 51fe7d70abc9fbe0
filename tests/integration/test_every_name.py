"""Every name of the language, used in a kernel that runs on cpu and in the interpreter and agrees with numpy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.dtypes import ALL

F32 = np.float32
X = np.array([-3.5, -1.0, -0.25, 0.0, 0.5, 1.0, 2.5, 3.0], F32)
POSITIVE = np.array([0.1, 0.5, 1.0, 1.5, 2.0, 4.0, 10.0, 100.0], F32)
SPECIAL = np.array([math.inf, -math.inf, math.nan, 0.0, -0.0, 1.0, -1.0, 1e-40], F32)
INTS = np.array([0, 1, 2, 7, -1, -8, 100, -100], np.int32)
OTHER = np.array([1, 2, 3, 5, -2, 3, 7, -7], np.int32)


@pytest.fixture(params=["cpu", "interpreter"])
def target(request: pytest.FixtureRequest) -> Iterator[str]:
    with tile.target(request.param):
        yield request.param


def trunc_div(a: Any, b: Any) -> Any:
    return np.trunc(a / b).astype(np.int32)


erf = np.vectorize(math.erf, otypes=[F32])

# name: (arguments, what numpy gives for them)
SCALAR: dict[str, tuple[tuple[Any, ...], Callable[..., Any]]] = {
    "abs": ((X,), np.abs),
    "align_up": ((INTS, 8), lambda a, b: -(-a // b) * b),
    "bitwise_and": ((INTS, OTHER), np.bitwise_and),
    "bitwise_not": ((INTS,), np.invert),
    "bitwise_or": ((INTS, OTHER), np.bitwise_or),
    "bitwise_xor": ((INTS, OTHER), np.bitwise_xor),
    "ceil": ((X,), np.ceil),
    "ceildiv": ((INTS, np.abs(OTHER)), lambda a, b: -(-a // b)),
    "clamp": ((X, -1.0, 1.0), np.clip),
    "clz": ((np.abs(INTS),), lambda a: np.array([32 - int(v).bit_length() for v in a], np.int32)),
    "cos": ((X,), np.cos),
    "erf": ((X,), erf),
    "exp": ((X,), np.exp),
    "exp10": ((X,), lambda a: np.power(F32(10), a)),
    "exp2": ((X,), np.exp2),
    "fast_rcp": ((POSITIVE,), np.reciprocal),
    "floor": ((X,), np.floor),
    "floordiv": ((INTS, OTHER), np.floor_divide),
    "floormod": ((INTS, OTHER), np.mod),
    "fma": ((X, POSITIVE, X), lambda a, b, c: (a.astype(float) * b + c).astype(F32)),
    "ieee_add": ((X, POSITIVE), np.add),
    "ieee_fdiv": ((X, POSITIVE), np.divide),
    "ieee_fmaf": ((X, POSITIVE, X), lambda a, b, c: (a.astype(float) * b + c).astype(F32)),
    "ieee_frcp": ((POSITIVE,), lambda a: F32(1) / a),
    "ieee_frsqrt": ((POSITIVE,), lambda a: (1 / np.sqrt(a.astype(float))).astype(F32)),
    "ieee_fsqrt": ((POSITIVE,), np.sqrt),
    "ieee_mul": ((X, POSITIVE), np.multiply),
    "ieee_sub": ((X, POSITIVE), np.subtract),
    "if_then_else": ((INTS, X, POSITIVE), lambda c, a, b: np.where(c != 0, a, b)),
    "isfinite": ((SPECIAL,), np.isfinite),
    "isinf": ((SPECIAL,), np.isinf),
    "isnan": ((SPECIAL,), np.isnan),
    "log": ((POSITIVE,), np.log),
    "log10": ((POSITIVE,), np.log10),
    "log2": ((POSITIVE,), np.log2),
    "max": ((X, SPECIAL), np.fmax),
    "min": ((X, SPECIAL), np.fmin),
    "popcount": ((np.abs(INTS),), lambda a: np.array([bin(v).count("1") for v in a], np.int32)),
    "pow": ((POSITIVE, X), np.power),
    "round": ((X,), np.round),
    "rsqrt": ((POSITIVE,), lambda a: 1 / np.sqrt(a)),
    "Select": ((INTS, X, POSITIVE), lambda c, a, b: np.where(c != 0, a, b)),
    "shift_left": ((INTS, np.abs(OTHER)), np.left_shift),
    "shift_right": ((INTS, np.abs(OTHER)), np.right_shift),
    "sigmoid": ((X,), lambda a: 1 / (1 + np.exp(-a))),
    "sin": ((X,), np.sin),
    "sqrt": ((POSITIVE,), np.sqrt),
    "tan": ((X,), np.tan),
    "tanh": ((X,), np.tanh),
    "trunc": ((X,), np.trunc),
    "truncdiv": ((INTS, OTHER), trunc_div),
    "truncmod": ((INTS, OTHER), lambda a, b: a - trunc_div(a, b) * b),
    "__cos": ((X,), np.cos),
    "__exp": ((X,), np.exp),
    "__exp2": ((X,), np.exp2),
    "__exp10": ((X,), lambda a: np.power(F32(10), a)),
    "__log": ((POSITIVE,), np.log),
    "__log10": ((POSITIVE,), np.log10),
    "__log2": ((POSITIVE,), np.log2),
    "__sin": ((X,), np.sin),
    "__tan": ((X,), np.tan),
}

EXACT = (np.int32, np.bool_)


def check_scalar(name: str) -> None:
    arguments, reference = SCALAR[name]
    function = getattr(T, name)
    arrays = [a for a in arguments if isinstance(a, np.ndarray)]
    with np.errstate(all="ignore"):
        expected = np.asarray(reference(*arguments))
    first, second, third = (*arrays, *[X] * (3 - len(arrays)))

    @T.prim_func
    def kernel(
        A: T.Tensor((8,), str(first.dtype)),
        B: T.Tensor((8,), str(second.dtype)),
        C: T.Tensor((8,), str(third.dtype)),
        out: T.Tensor((8,), str(expected.dtype)),
    ):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                tensors = iter((A, B, C))
                out[i] = function(*[next(tensors)[i] if isinstance(a, np.ndarray) else a for a in arguments])

    out = np.zeros(8, expected.dtype)
    tile.compile(kernel)(first, second, third, out)
    if expected.dtype.type in EXACT or name.startswith("ieee"):
        np.testing.assert_array_equal(out, expected)
    else:
        np.testing.assert_allclose(out, expected, rtol=2e-6, atol=1e-7)


def check_type(name: str) -> None:
    """Copy, conversion from and to float32, arithmetic, reduction: as ml_dtypes and numpy do."""
    type = getattr(T, name)
    array = type.as_numpy()
    values = np.array([0, 1, 1, 0, 1, 0, 0, 1] if type.bits <= 2 else [0, 1, 2, 0.5, 4, 1, 2, 1], F32)
    if type.kind == "int" and type.bits == 1:
        values = -values
    if type.name == "float8_e8m0fnu":
        values = np.array([1, 2, 0.5, 4, 8, 0.25, 1, 2], F32)
    x = values.astype(array)

    @T.prim_func
    def kernel(A: T.Tensor((8,), type), B: T.Tensor((8,), type), C: T.Tensor((8,)), D: T.Tensor((8,), type)):
        with T.Kernel(1, threads=32):
            f = T.alloc_fragment((8,), type)
            T.copy(A, f)
            T.copy(f, B)
            for i in T.Parallel(8):
                C[i] = T.float32(f[i]) * 2
                D[i] = T.cast(C[i] / 2, type)

    b, c, d = np.zeros(8, array), np.zeros(8, F32), np.zeros(8, array)
    tile.compile(kernel)(x, b, c, d)
    np.testing.assert_array_equal(b.view(np.uint8), x.view(np.uint8))
    np.testing.assert_array_equal(c, x.astype(F32) * 2)
    np.testing.assert_array_equal(d.view(np.uint8), x.view(np.uint8))


ENTRIES: dict[str, Callable[[], None]] = {}


def uses(*names: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Mark a function as the test of names of the language."""

    def mark(check: Callable[[], None]) -> Callable[[], None]:
        ENTRIES.update(dict.fromkeys(names, check))
        return check

    return mark


def ran(kernel: Any, *arguments: Any) -> None:
    tile.compile(kernel)(*arguments)


@uses(
    "prim_func", "Tensor", "Buffer", "Kernel", "copy", "alloc_shared", "alloc_fragment", "Parallel", "DType"
)
def check_copies() -> None:
    assert isinstance(T.float32, T.DType)

    @T.prim_func
    def kernel(A: T.Tensor((70, 33)), B: T.Buffer((70, 33))):
        with T.Kernel(T.ceildiv(33, 16), T.ceildiv(70, 32), threads=64) as (bx, by):
            s, f = T.alloc_shared((32, 16), "float32"), T.alloc_fragment((32, 16), "float32")
            T.copy(A[by * 32, bx * 16], s)
            T.copy(s, f)
            for i, j in T.Parallel(32, 16):
                f[i, j] = f[i, j] * 2
            T.copy(f, B[by * 32, bx * 16])

    a, b = np.random.default_rng(0).random((70, 33), F32), np.zeros((70, 33), F32)
    ran(kernel, a, b)
    np.testing.assert_array_equal(b, a * 2)


@uses("fill", "clear", "transpose", "alloc_local", "alloc_var")
def check_setting() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 6)), B: T.Tensor((6, 4)), C: T.Tensor((8, 8))):
        with T.Kernel(1, threads=32):
            s, t = T.alloc_shared((4, 6), "float32"), T.alloc_shared((6, 4), "float32")
            f, local = T.alloc_fragment((8, 8), "float32"), T.alloc_local((3,), "float32")
            n = T.alloc_var("int32", 2)
            T.copy(A, s)
            T.transpose(s, t)
            T.copy(t, B)
            T.fill(f, 7)
            T.clear(f[2:4, :])
            T.copy(f, C)
            local[2] = 5
            n = n + 1
            n += 1
            C[0, 0] = local[2] + n

    a, b, c = np.random.default_rng(0).random((4, 6), F32), np.zeros((6, 4), F32), np.zeros((8, 8), F32)
    ran(kernel, a, b, c)
    expected = np.full((8, 8), 7, F32)
    expected[2:4], expected[0, 0] = 0, 9
    np.testing.assert_array_equal(b, a.T)
    np.testing.assert_array_equal(c, expected)


@uses("gemm", "GemmWarpPolicy", "Pipelined", "use_swizzle", "annotate_layout")
def check_gemm() -> None:
    from tile_core.layout.layout import Axis, Iter, Layout

    @T.prim_func
    def kernel(A: T.Tensor((64, 64)), B: T.Tensor((64, 64)), C: T.Tensor((64, 64))):
        with T.Kernel(2, 2, threads=64) as (bx, by):
            a, b = T.alloc_shared((32, 16), "float32"), T.alloc_shared((32, 16), "float32")
            c = T.alloc_fragment((32, 32), "float32")
            T.use_swizzle(2)
            T.annotate_layout({a: Layout((32, 16), (Iter(512, 1, Axis.MEMORY),))})
            T.clear(c)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[by * 32, k * 16], a)
                T.copy(B[bx * 32, k * 16], b)
                T.gemm(a, b, c, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            T.copy(c, C[by * 32, bx * 32])

    a, b = np.random.default_rng(0).standard_normal((2, 64, 64)).astype(F32)
    c = np.zeros((64, 64), F32)
    ran(kernel, a, b, c)
    np.testing.assert_allclose(c, a @ b.T, rtol=1e-4, atol=1e-4)


def reduced(reference: Callable[..., Any], type: str, call: Callable[[Any, Any, int], None]) -> None:
    rng = np.random.default_rng(0)
    whole = rng.integers(-9, 9, (6, 10)) if type == "int32" else rng.standard_normal((6, 10))
    x = whole.astype(type)
    for dim in (0, 1):
        n = x.shape[1 - dim]

        @T.prim_func
        def kernel(A: T.Tensor((6, 10), type), B: T.Tensor((n,), type)):
            with T.Kernel(1, threads=32):
                f, r = T.alloc_fragment((6, 10), type), T.alloc_fragment((n,), type)
                T.copy(A, f)
                call(f, r, dim)
                T.copy(r, B)

        out = np.zeros(n, type)
        ran(kernel, x, out)
        np.testing.assert_allclose(out, reference(x, axis=dim), rtol=1e-5, atol=1e-5)


REDUCTIONS: dict[str, tuple[str, Callable[..., Any]]] = {
    "reduce_sum": ("float32", np.sum),
    "reduce_max": ("float32", np.max),
    "reduce_min": ("float32", np.min),
    "reduce_absmax": ("float32", lambda x, axis: np.abs(x).max(axis)),
    "reduce_abssum": ("float32", lambda x, axis: np.abs(x).sum(axis)),
    "reduce_bitand": ("int32", np.bitwise_and.reduce),
    "reduce_bitor": ("int32", np.bitwise_or.reduce),
    "reduce_bitxor": ("int32", np.bitwise_xor.reduce),
}


@uses(*REDUCTIONS, "reduce")
def check_reductions() -> None:
    for name, (type, reference) in REDUCTIONS.items():
        function = getattr(T, name)
        reduced(reference, type, lambda f, r, dim: function(f, r, dim=dim))
    reduced(np.sum, "float32", lambda f, r, dim: T.reduce(f, r, "sum", dim=dim))


@uses("cumsum", "cummax", "any_of", "all_of")
def check_scans() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((6, 10)), S: T.Tensor((6, 10)), M: T.Tensor((6, 10)), V: T.Tensor((3,), "int32")):
        with T.Kernel(1, threads=32):
            a, m = T.alloc_shared((6, 10), "float32"), T.alloc_shared((6, 10), "float32")
            T.copy(A, a)
            T.cummax(a, m, dim=1)
            T.copy(m, M)
            V[0] = T.if_then_else(T.any_of(a), 1, 2)
            V[1] = T.if_then_else(T.all_of(a), 1, 2)
            V[2] = T.if_then_else(T.all_of(a[1:3, :]), 1, 2)
            T.cumsum(a, dim=0, reverse=True)
            T.copy(a, S)

    a = np.random.default_rng(0).standard_normal((6, 10)).astype(F32)
    a[0, 3] = 0
    s, m, v = np.zeros((6, 10), F32), np.zeros((6, 10), F32), np.zeros(3, np.int32)
    ran(kernel, a, s, m, v)
    np.testing.assert_allclose(s, np.cumsum(a[::-1], 0)[::-1], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(m, np.maximum.accumulate(a, 1))
    assert v.tolist() == [1, 2, 1]


@uses("serial", "Serial", "unroll", "Unroll", "vectorized", "Vectorized", "grid")
def check_loops() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((7,), "int32"), G: T.Tensor((3, 4), "int32")):
        with T.Kernel(1):
            for i in T.serial(2, 10, 3):
                C[0] += i
            for i in T.Serial(10, 0, -2):
                C[1] += i
            for i in T.unroll(5, unroll_factor=2):
                C[2] += i
            for i in T.Unroll(3):
                C[3] += i
            for i in T.vectorized(2):
                C[4 + i] = 9 + i
            for i in T.Vectorized(1):
                C[6 + i] = 11
            for i, j in T.grid(3, 4):
                G[i, j] = i * 10 + j

    c, g = np.zeros(7, np.int32), np.zeros((3, 4), np.int32)
    ran(kernel, c, g)
    assert c.tolist() == [15, 30, 10, 3, 9, 10, 11]
    np.testing.assert_array_equal(g, np.arange(3)[:, None] * 10 + np.arange(4))


@uses("Persistent", "get_block_binding", "get_block_bindings", "get_block_extent")
def check_blocks() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((5, 7), "int32"), B: T.Tensor((3, 2), "int32")):
        with T.Kernel(3, 2):
            bx, by = T.get_block_bindings()
            B[T.get_block_binding(0), by] = T.get_block_extent(0) * 100 + bx * 10 + T.get_block_binding(1)
            if by == 0:
                for i, j in T.Persistent((5, 7), 3, bx, group_size=2):
                    C[i, j] += i * 10 + j

    c, b = np.zeros((5, 7), np.int32), np.zeros((3, 2), np.int32)
    ran(kernel, c, b)
    np.testing.assert_array_equal(c, np.arange(5)[:, None] * 10 + np.arange(7))
    np.testing.assert_array_equal(b, 300 + np.arange(3)[:, None] * 10 + np.arange(2))


@uses("get_thread_binding", "get_thread_bindings", "get_thread_extent", "get_thread_extents", "sync_threads")
def check_threads() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((32,), "int32"), D: T.Tensor((4, 8), "int32")):
        with T.Kernel(1, threads=(8, 4)):
            tx, ty = T.get_thread_bindings()
            s = T.alloc_shared((32,), "int32")
            n = ty * T.get_thread_extent(0) + T.get_thread_binding(0)
            s[n] = n
            T.sync_threads()
            C[n] = s[31 - n]
            D[ty, tx] = T.get_thread_extents()[1]

    c, d = np.zeros(32, np.int32), np.zeros((4, 8), np.int32)
    ran(kernel, c, d)
    np.testing.assert_array_equal(c, np.arange(32)[::-1])
    assert (d == 4).all()


@uses("dynamic", "symbolic", "StridedTensor", "ptr", "make_tensor")
def check_parameters() -> None:
    m, s = T.dynamic("m"), T.symbolic("s")

    @T.prim_func
    def kernel(A: T.StridedTensor((m, 4), (s, 1)), P: T.ptr("float32"), B: T.Tensor((m, 4))):
        with T.Kernel(m) as bx:
            Q = T.make_tensor(P, (m, 4), "float32")
            for j in T.Parallel(4):
                B[bx, j] = A[bx, j] + Q[bx, j]

    a = np.random.default_rng(0).random((5, 9), F32)
    p, b = np.ones((5, 4), F32), np.zeros((5, 4), F32)
    ran(kernel, a[:, :4], p, b)
    np.testing.assert_array_equal(b, a[:, :4] + 1)


@uses("const", "empty", "alloc_global", "reshape", "view")
def check_eager() -> None:
    @tile.jit
    def kernel(A):
        M, N = T.const("M, N")
        A: T.Tensor((M, N), "float32")
        B = T.empty((N, M), "float32")
        bits = T.empty((M, N), "int32")
        W = T.alloc_global((M, N), "float32")
        with T.Kernel(M) as bx:
            for j in T.Parallel(N):
                W[bx, j] = A[bx, j] * 2
        with T.Kernel(1):
            flat, whole = T.reshape(W, (N, M)), T.view(W, dtype="int32")
            for i, j in T.Parallel(N, M):
                B[i, j] = flat[i, j]
            for i, j in T.Parallel(M, N):
                bits[i, j] = whole[i, j]
        return B, bits

    a = np.random.default_rng(0).random((4, 6), F32)
    b, bits = kernel(a)
    np.testing.assert_array_equal(b, (a * 2).reshape(6, 4))
    np.testing.assert_array_equal(bits, (a * 2).view(np.int32))


@uses("atomic_add", "atomic_max", "atomic_min", "atomic_and", "atomic_or", "atomic_load", "atomic_store")
def check_atomics() -> None:
    @T.prim_func
    def kernel(X: T.Tensor((64,), "int32"), C: T.Tensor((8,), "int32")):
        with T.Kernel(64) as bx:
            T.atomic_add(C[0], X[bx])
            T.atomic_max(C[1], X[bx])
            T.atomic_min(C[2], X[bx])
            T.atomic_and(C[3], X[bx])
            T.atomic_or(C[4], X[bx])
            T.atomic_store(C[5], 3)
            if T.atomic_load(C[6]) == 9:
                T.atomic_add(C[7], 1)

    x = np.random.default_rng(0).integers(-50, 50, 64).astype(np.int32)
    c = np.array([0, 0, 0, -1, 0, 0, 9, 0], np.int32)
    ran(kernel, x, c)
    low, high = min(0, x.min()), max(0, x.max())
    assert c.tolist() == [
        x.sum(),
        high,
        low,
        np.bitwise_and.reduce(x),
        np.bitwise_or.reduce(x),
        3,
        9,
        64,
    ]


@uses("atomic_addx2", "atomic_addx4")
def check_wide_atomics() -> None:
    @T.prim_func
    def kernel(X: T.Tensor((8, 4)), C: T.Tensor((4,)), D: T.Tensor((4,))):
        with T.Kernel(8) as bx:
            T.atomic_addx4(C[0], X[bx, 0])
            T.atomic_addx2(D[2], X[bx, 1])

    x = np.arange(32, dtype=F32).reshape(8, 4)
    c, d = np.zeros(4, F32), np.zeros(4, F32)
    ran(kernel, x, c, d)
    np.testing.assert_array_equal(c, x.sum(0))
    np.testing.assert_array_equal(d, [0, 0, *x.sum(0)[1:3]])


@uses("macro", "assume", "device_assert", "print")
def check_macros() -> None:
    @T.macro
    def twice(tile: Any, n: int, factor: float = 2.0) -> Any:
        for i in T.Parallel(n):
            tile[i] = tile[i] * factor
        return factor + 1

    m = T.dynamic("m")

    @T.prim_func
    def kernel(A: T.Tensor((m,)), B: T.Tensor((1,))):
        with T.Kernel(1):
            T.assume(m > 0)
            T.device_assert(A[0] > 0, "positive")
            B[0] = twice(A, m, factor=3.0)
            T.print(A[0], msg="first")

    a, b = np.ones(5, F32), np.zeros(1, F32)
    ran(kernel, a, b)
    assert (a == 3).all()
    assert b[0] == 4


@uses("cast", "Cast", "reinterpret", "dtype", "infinity", "max_value", "min_value")
def check_conversions() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((8,)), I: T.Tensor((5, 8), "int32"), V: T.Tensor((4,))):
        with T.Kernel(1):
            for i in T.Parallel(8):
                I[0, i] = T.cast(A[i], "int32")
                I[1, i] = T.Cast(A[i], T.int8)
                I[2, i] = T.reinterpret(A[i], "int32")
                I[3, i] = T.dtype("int16")(A[i])
                I[4, i] = T.max_value("int32")
            V[0], V[1] = T.infinity("float32"), -T.infinity(T.float16)
            V[2], V[3] = T.min_value("float16"), T.max_value("bfloat16")

    i, v = np.zeros((5, 8), np.int32), np.zeros(4, F32)
    ran(kernel, X, i, v)
    whole = np.trunc(X).astype(np.int32)
    np.testing.assert_array_equal(i[:4], [whole, whole, X.view(np.int32), whole])
    assert (i[4] == 2**31 - 1).all()
    np.testing.assert_array_equal(v, np.array([np.inf, -np.inf, -65504, 3.3895314e38], F32))


SHORT = ("half", "float", "double", "int", "uint")
TYPES = [n for n in T.__all__ if n in ALL or n in SHORT]


@pytest.mark.parametrize("name", T.__all__)
def test_name(name: str, target: str) -> None:
    if name in SCALAR:
        check_scalar(name)
    elif name in TYPES:
        check_type(name)
    else:
        assert name in ENTRIES, f"T.{name} has no entry here"
        ENTRIES[name]()


def test_vector_types() -> None:
    assert T.float16x4.lanes == 4
    with pytest.raises(AttributeError, match="float17x4"):
        _ = T.float17x4
