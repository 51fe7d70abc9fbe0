"""Element loops: every operator, function and type, against numpy."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from cpu_programs import allocs, at, cell, elements, fragment, kernel, tensor, var, whole

from tile_core.dtypes import dtype
from tile_core.expr import Binary, Select, bitcast, call, cast, const, expr, maximum, minimum, select
from tile_core.program import Bind, Copy, For, If, Parallel, Store

N = 203


def pointwise(make, sources, target, n=N):
    """Runs ``out[i] = make(a[i], b[i], ...)``; ``sources`` are arrays with the type's name, or arrays."""
    tensors = [tensor("xyz"[k], (n,), t) for k, (t, _) in enumerate(sources)]
    out = tensor("out", (n,), target)
    i = var("i")
    body = [Parallel((i,), (n,), (Store(out, (i,), make(*(at(t, i) for t in tensors))),))]
    result = np.zeros(n, elements(target))
    kernel([*tensors, out], body)(*(a for _, a in sources), result)
    return result


def same(a, b):
    """Equal, with NaN equal to NaN, and zeros of one sign."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind not in "biu":
        x, y = a.astype(np.float64), b.astype(np.float64)
        both = np.isnan(x) & np.isnan(y)
        return bool(np.all((x == y) & (np.signbit(x) == np.signbit(y)) | both))
    return bool(np.array_equal(a, b))


def sample(rng, t, n=N):
    kind = dtype(t)
    if kind.is_float:
        x = rng.standard_normal(n) * 4
        x[:8] = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5]
        with np.errstate(all="ignore"):
            return x.astype(np.float32).astype(elements(t))
    if kind.is_bool:
        return rng.integers(0, 2, n).astype(bool)
    bits = kind.bits
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if kind.kind == "int" else (0, 2**bits - 1)
    x = rng.integers(low, high, n, endpoint=True, dtype=np.int64 if high < 2**63 else np.uint64)
    return x.astype(elements(t))


FLOATS = ["float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
NUMPY = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}


@pytest.mark.parametrize("t", FLOATS)
@pytest.mark.parametrize("op", list(NUMPY))
def test_float_arithmetic_rounds_each_operation(op, t, rng):
    x, y = sample(rng, t), sample(rng, t)
    y = y[rng.permutation(N)]
    with np.errstate(all="ignore"):
        wanted = NUMPY[op](x, y)
    assert same(pointwise(lambda a, b: Binary(op, a, b), [(t, x), (t, y)], t), wanted)


@pytest.mark.parametrize("t", ["float32", "float16", "bfloat16"])
def test_no_contraction(t, rng):
    x, y, z = (sample(rng, t)[rng.permutation(N)] for _ in range(3))
    with np.errstate(all="ignore"):
        wanted = x * y + z
    assert same(pointwise(lambda a, b, c: a * b + c, [(t, x), (t, y), (t, z)], t), wanted)


def test_zero_times_infinity_is_nan():
    x = np.full(N, np.inf, np.float32)
    assert np.isnan(
        pointwise(lambda a: Binary("*", a, const(0.0, "float32")), [("float32", x)], "float32")
    ).all()


@pytest.mark.parametrize("t", FLOATS)
def test_min_max_skip_nan(t, rng):
    x, y = sample(rng, t), sample(rng, t)
    x[N - 4 :], y[N - 6 : N - 2] = np.nan, np.nan
    x = np.where(x == 0, 1, x).astype(x.dtype)  # the sign of a zero result is not defined
    for make, reference in ((minimum, np.fmin), (maximum, np.fmax)):
        wanted = reference(x.astype(np.float64), y.astype(np.float64))
        assert same(pointwise(make, [(t, x), (t, y)], t).astype(np.float64), wanted)


@pytest.mark.parametrize("t", [*FLOATS, *INTEGERS, "bool"])
@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "==", "!="])
def test_comparisons(op, t, rng):
    x, y = sample(rng, t), sample(rng, t)
    y[::3] = x[::3]
    reference = {
        "<": np.less,
        "<=": np.less_equal,
        ">": np.greater,
        ">=": np.greater_equal,
        "==": np.equal,
        "!=": np.not_equal,
    }
    assert same(pointwise(lambda a, b: Binary(op, a, b), [(t, x), (t, y)], "bool"), reference[op](x, y))


@pytest.mark.parametrize("t", INTEGERS)
@pytest.mark.parametrize("op", ["+", "-", "*", "//", "%", "&", "|", "^", "min", "max"])
def test_integer_arithmetic_wraps(op, t, rng):
    x, y = sample(rng, t), sample(rng, t)
    y[:4] = 0
    if dtype(t).kind == "int":
        y[4:8] = -1
        x[4:6] = np.iinfo(x.dtype).min
    reference = {
        "+": np.add,
        "-": np.subtract,
        "*": np.multiply,
        "//": np.floor_divide,
        "%": np.remainder,
        "&": np.bitwise_and,
        "|": np.bitwise_or,
        "^": np.bitwise_xor,
        "min": np.minimum,
        "max": np.maximum,
    }
    with np.errstate(all="ignore"):
        wanted = reference[op](x, y)
    assert same(pointwise(lambda a, b: Binary(op, a, b), [(t, x), (t, y)], t), wanted)


@pytest.mark.parametrize("op", ["truncdiv", "truncmod"])
def test_truncating_division(op, rng):
    x, y = sample(rng, "int32"), sample(rng, "int32") % 97 - 48
    y[y == 0] = 5
    quotient = np.trunc(x.astype(np.float64) / y).astype(np.int32)
    wanted = quotient if op == "truncdiv" else x - quotient * y
    assert same(pointwise(lambda a, b: Binary(op, a, b), [("int32", x), ("int32", y)], "int32"), wanted)


@pytest.mark.parametrize("divisor", [1, 2, 7, 8, -3, -1])
def test_division_by_a_constant(divisor, rng):
    x = sample(rng, "int32")
    make = [lambda a: a // divisor, lambda a: a % divisor]
    assert same(pointwise(make[0], [("int32", x)], "int32"), x // divisor)
    assert same(pointwise(make[1], [("int32", x)], "int32"), x % divisor)


@pytest.mark.parametrize("t", ["float32", "float64"])
def test_float_floor_division(t, rng):
    x, y = rng.standard_normal(N).astype(t) * 100, rng.standard_normal(N).astype(t)
    assert same(pointwise(lambda a, b: a // b, [(t, x), (t, y)], t), np.floor(x / y))
    assert same(pointwise(lambda a, b: a % b, [(t, x), (t, y)], t), x - np.floor(x / y) * y)


@pytest.mark.parametrize("t", ["int8", "int32", "uint32", "int64", "uint8"])
def test_shifts(t, rng):
    x = sample(rng, t)
    bits = dtype(t).bits
    y = rng.integers(0, bits, N).astype(x.dtype)
    assert same(pointwise(lambda a, b: a << b, [(t, x), (t, y)], t), x << y)
    assert same(pointwise(lambda a, b: a >> b, [(t, x), (t, y)], t), x >> y)
    y[:] = bits
    assert same(pointwise(lambda a, b: a << b, [(t, x), (t, y)], t), np.zeros_like(x))
    wanted = np.where(x < 0, -1, 0).astype(x.dtype) if dtype(t).kind == "int" else np.zeros_like(x)
    assert same(pointwise(lambda a, b: a >> b, [(t, x), (t, y)], t), wanted)


@pytest.mark.parametrize("t", ["int4", "uint4", "int2"])
def test_sub_byte_integers(t):
    bits = dtype(t).bits
    every = np.arange(2**bits) if dtype(t).kind == "uint" else np.arange(-(2 ** (bits - 1)), 2 ** (bits - 1))
    x, y = (v.reshape(-1).astype(np.int8) for v in np.meshgrid(every, every))
    u, v = x.astype(elements(t)), y.astype(elements(t))

    def wrap(w):
        w = w & (2**bits - 1)
        return np.where(w >= 2 ** (bits - 1), w - 2**bits, w) if dtype(t).kind == "int" else w

    for make, reference in (
        (lambda a, b: a + b, np.add),
        (lambda a, b: a * b, np.multiply),
        (lambda a, b: a - b, np.subtract),
    ):
        got = pointwise(make, [(t, u), (t, v)], t, n=len(x)).astype(np.int32)
        assert np.array_equal(got, wrap(reference(x.astype(np.int32), y.astype(np.int32))))


def test_unary(rng):
    x = sample(rng, "float32")
    assert same(pointwise(lambda a: -a, [("float32", x)], "float32"), -x)
    k = sample(rng, "int16")
    assert same(pointwise(lambda a: -a, [("int16", k)], "int16"), -k)
    assert same(pointwise(lambda a: ~a, [("int16", k)], "int16"), ~k)


def test_select_and_logic(rng):
    x, y = sample(rng, "float32"), sample(rng, "float32")[::-1].copy()
    got = pointwise(
        lambda a, b: select(Binary("and", a > 0, b > 0), a, b), [("float32", x), ("float32", y)], "float32"
    )
    assert same(got, np.where((x > 0) & (y > 0), x, y))


def test_lazy_select_does_not_read_outside():
    n = 50
    x, out = tensor("x", (n,)), tensor("out", (n,))
    i = var("i")
    value = Select(i > 0, at(x, i - 1), const(9.0, "float32"))
    a = np.arange(n, dtype=np.float32)
    b = np.zeros(n, np.float32)
    run = kernel([x, out], [Parallel((i,), (n,), (Store(out, (i,), value),))])
    run(a, b)
    assert np.array_equal(b, np.concatenate([[9], a[:-1]]))


def test_store_and_load_outside_are_guarded():
    n = 40
    x, out = tensor("x", (n,)), tensor("out", (n,))
    i = var("i")
    body = [Parallel((i,), (64,), (Store(out, (i + 3,), at(x, i * 2)),))]
    a, b = np.arange(1, n + 1, dtype=np.float32), np.zeros(n, np.float32)
    kernel([x, out], body)(a, b)
    wanted = np.zeros(n, np.float32)
    for k in range(64):
        if k + 3 < n:
            wanted[k + 3] = a[2 * k] if 2 * k < n else 0
    assert np.array_equal(b, wanted)


NARROW = [
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e4m3b11fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float4_e2m1fn",
    "bfloat16",
    "float16",
]


@pytest.mark.parametrize("t", NARROW)
def test_narrow_float_decode_is_exact(t):
    width = {"float6_e2m3fn": 6, "float6_e3m2fn": 6, "float4_e2m1fn": 4}.get(t, elements(t).itemsize * 8)
    codes = np.arange(2**width).astype(np.uint16 if width == 16 else np.uint8)
    x = codes.view(elements(t))
    assert same(pointwise(lambda a: cast(a, "float32"), [(t, x)], "float32", n=len(x)), x.astype(np.float32))


@pytest.mark.parametrize("t", NARROW)
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_narrow_float_encode_rounds_as_ml_dtypes(t, source, rng):
    bits = rng.integers(0, 2**32, 60000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = (rng.standard_normal(20000) * np.exp2(rng.uniform(-20, 17, 20000))).astype(np.float32)
    codes = np.arange(256, dtype=np.uint8).view(
        np.dtype(getattr(ml_dtypes, t, np.uint8)) if "8" in t else np.uint8
    )
    with np.errstate(all="ignore"):
        exact = codes.astype(np.float32)
        halfway = (exact[1:].astype(np.float64) + exact[:-1].astype(np.float64)) / 2
        x = np.concatenate([bits, near, exact, halfway.astype(np.float32), [0, -0.0, np.inf, -np.inf]])
        x = x[np.isfinite(x) | (source == "float32")].astype(source)
        wanted = x.astype(elements(t))
    got = pointwise(lambda a: cast(a, t), [(source, x)], t, n=len(x))
    kind = np.uint16 if wanted.dtype.itemsize == 2 else np.uint8
    both_nan = np.isnan(got.astype(np.float32)) & np.isnan(wanted.astype(np.float32))
    wrong = (got.view(kind) != wanted.view(kind)) & ~both_nan
    assert not wrong.any(), (x[wrong][:4], got.view(kind)[wrong][:4], wanted.view(kind)[wrong][:4])


def test_float_to_integer_saturates():
    x = np.resize(np.array([1e20, -1e20, np.nan, 3.99, -3.99, 2**31, 300, -1], np.float32), N)
    got = pointwise(lambda a: cast(a, "int32"), [("float32", x)], "int32")
    assert list(got[:8]) == [2**31 - 1, -(2**31), 0, 3, -3, 2**31 - 1, 300, -1]
    got = pointwise(lambda a: cast(a, "uint8"), [("float32", x)], "uint8")
    assert list(got[:8]) == [255, 0, 0, 3, 0, 255, 255, 0]


def test_bitcast(rng):
    x = sample(rng, "float32")
    assert same(pointwise(lambda a: bitcast(a, "int32"), [("float32", x)], "int32"), x.view(np.int32))
    h = sample(rng, "float16")
    assert same(pointwise(lambda a: bitcast(a, "uint16"), [("float16", h)], "uint16"), h.view(np.uint16))


ERF = np.vectorize(math.erf)
FUNCTIONS = {
    "exp": np.exp,
    "exp2": np.exp2,
    "exp10": lambda x: 10.0**x,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": ERF,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.round,
    "trunc": np.trunc,
    "abs": np.abs,
    "__exp": np.exp,
    "__exp2": np.exp2,
    "__exp10": lambda x: 10.0**x,
    "__log": np.log,
    "__log2": np.log2,
    "__log10": np.log10,
    "__sin": np.sin,
    "__cos": np.cos,
    "__tan": np.tan,
    "__rcp": lambda x: 1 / x,
    "ieee_sqrt": np.sqrt,
    "ieee_rcp": lambda x: 1 / x,
    "ieee_rsqrt": lambda x: 1 / np.sqrt(x),
}
EDGES = [
    0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1,
    -1,
    1e-40,
    -1e-40,
    3e38,
    -3e38,
    88.7,
    89,
    -87.4,
    -103.9,
    128,
    127.99,
    -149,
    -151,
]


@pytest.mark.parametrize("name", list(FUNCTIONS))
@pytest.mark.parametrize(("t", "ulps"), [("float32", 3), ("float64", 3), ("float16", 1), ("bfloat16", 1)])
def test_functions(name, t, ulps, rng):
    wide = np.concatenate(
        [
            EDGES,
            rng.standard_normal(1500) * 3,
            rng.uniform(-100, 100, 1500),
            1 + rng.standard_normal(500) / 1e3,
        ]
    )
    with np.errstate(all="ignore"):
        x = wide.astype(np.float32).astype(elements(t))
        exact = FUNCTIONS[name](x.astype(np.float64))
        wanted = exact.astype(elements(t))
    got = pointwise(lambda a: call(name, a), [(t, x)], t, n=len(x))
    special = ~np.isfinite(wanted.astype(np.float64))
    assert same(got[special], wanted[special])
    a, b = got[~special].astype(np.float64), exact[~special]
    info = ml_dtypes.finfo(elements(t))
    gap = np.exp2(np.floor(np.log2(np.maximum(np.abs(b), float(info.smallest_normal)))) - info.nmant)
    error = np.abs(a - b) / gap
    worst = int(np.argmax(error))
    assert error[worst] <= ulps, (x[~special][worst], a[worst], b[worst], error[worst])


@pytest.mark.parametrize("t", ["float32", "float16", "float64"])
def test_float_tests(t, rng):
    x = sample(rng, t)
    for name, reference in (("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite)):
        assert same(pointwise(lambda a, name=name: call(name, a), [(t, x)], "bool"), reference(x))


def test_two_and_three_arguments(rng):
    x, y = np.abs(sample(rng, "float32")), sample(rng, "float32")
    with np.errstate(all="ignore"):
        got = pointwise(lambda a, b: call("pow", a, b), [("float32", x), ("float32", y)], "float32")
        assert np.allclose(got, np.power(x, y), rtol=1e-6, equal_nan=True)
    z = sample(rng, "float32")
    got = pointwise(
        lambda a, b, c: call("fma", a, b, c), [("float32", x), ("float32", y), ("float32", z)], "float32"
    )
    with np.errstate(all="ignore"):
        wanted = (x.astype(np.float64) * y + z).astype(np.float32)
    assert np.allclose(got, wanted, rtol=1e-6, equal_nan=True)


def test_integer_functions(rng):
    for t in ("int32", "uint8", "int64"):
        x = sample(rng, t)
        bits = dtype(t).bits
        unsigned = [int(v) & (2**bits - 1) for v in x]
        assert list(pointwise(lambda a: call("popcount", a), [(t, x)], t)) == [
            v.bit_count() for v in unsigned
        ]
        assert list(pointwise(lambda a: call("clz", a), [(t, x)], t)) == [
            bits - v.bit_length() for v in unsigned
        ]
    x = sample(rng, "int32")
    assert same(pointwise(lambda a: call("abs", a), [("int32", x)], "int32"), np.abs(x))
    base, power = rng.integers(-9, 9, N).astype(np.int32), rng.integers(0, 6, N).astype(np.int32)
    got = pointwise(lambda a, b: call("pow", a, b), [("int32", base), ("int32", power)], "int32")
    assert same(got, base**power)


def test_values_of_a_tile(rng):
    """A fragment is written by one loop and read by the next, with a value bound on the way."""
    a, b = tensor("A", (20, 30)), tensor("B", (20, 30))
    f, row = fragment("F", (20, 30)), fragment("R", (20,))
    i, j, k, scale = var("i"), var("j"), var("k"), var("scale", "float32")
    body = [
        *allocs(f, row),
        Copy(whole(a), whole(f)),
        Parallel((k,), (20,), (Store(row, (k,), at(f, k, 0) + 1.0),)),
        Parallel((i, j), (20, 30), (Bind(scale, at(row, i) * 2.0), Store(f, (i, j), at(f, i, j) * scale))),
        Copy(whole(f), whole(b)),
    ]
    x, y = rng.standard_normal((20, 30)).astype(np.float32), np.zeros((20, 30), np.float32)
    kernel([a, b], body)(x, y)
    assert np.array_equal(y, x * ((x[:, :1] + 1) * 2))


def test_loops_inside_parallel(rng):
    a, b = tensor("A", (16, 8)), tensor("B", (16,))
    i, j, total = var("i"), var("j"), cell("total")
    body = [
        *allocs(total),
        Parallel(
            (i,),
            (16,),
            (
                Store(total, (), const(0.0, "float32")),
                For(j, expr(0), 8, (If(at(a, i, j) > 0, (Store(total, (), at(total) + at(a, i, j)),)),)),
                Store(b, (i,), at(total)),
            ),
        ),
    ]
    x, y = rng.standard_normal((16, 8)).astype(np.float32), np.zeros(16, np.float32)
    kernel([a, b], body)(x, y)
    assert np.allclose(y, np.where(x > 0, x, 0).sum(1))


INDEX = {
    "int8": lambda i: cast(cast(i, "int8"), "int32"),
    "uint32": lambda i: cast(cast(i - 100, "uint32"), "int64"),
    "uint64": lambda i: cast(i - 100, "uint64"),
    "sum in uint8": lambda i: cast(cast(i, "uint8") + const(100, "uint8"), "int32"),
    "product in int8": lambda i: cast(maximum(cast(i, "int8"), 0) * const(3, "int8"), "int32"),
    "nothing lost": lambda i: cast(cast(i, "uint8"), "int32"),
    "in range": lambda i: cast(cast(cast(i, "int64") + 50, "int32"), "int64") - 50,
}


@pytest.mark.parametrize("name", INDEX)
def test_an_index_that_wraps_is_not_taken_to_be_inside(name):
    """The elements beside the tensor must not be read, whatever the index becomes."""
    size = 200
    a, b, i = tensor("A", (size,)), tensor("B", (size,)), var("i")
    run = kernel([a, b], [Parallel((i,), (size,), (Store(b, (i,), at(a, INDEX[name](i))),))])
    around = np.arange(1, 4 * size + 1, dtype=np.float32)
    x, y = around[size : 2 * size], np.zeros(size, np.float32)
    run(x, y)
    index = [int(INDEX[name](const(n)).value) for n in range(size)]
    assert y.tolist() == [x[n] if 0 <= n < size else 0 for n in index]
