"""Scalar functions as LLVM IR: branch-free polynomials for float32, the C library for the rest.

Each is within 2 to 3 units in the last place of the exact result, and right for zeros, denormals, infinities and NaN.
They hold no branch, so that LLVM's loop vectoriser widens a loop that calls them.
"""

from __future__ import annotations

from collections.abc import Callable

from .writer import Function, Value, like

# Minimax fits, highest power first; relative error below 6e-9 on the interval named.
EXP2 = (
    0.00015475095,
    0.0013400311,
    0.0096180084,
    0.0555032764,
    0.24022651305,
    0.69314720637,
)  # (2^f - 1)/f, |f| <= 1/2
EXP = (
    0.00139504766,
    0.00836888400,
    0.0416662060147,
    0.16666518883,
    0.50000000951,
)  # (e^r - 1 - r)/r^2, |r| <= ln2/2
LOG = (  # (log(1+f) - f + f^2/2)/f^3, 1+f in [sqrt(1/2), sqrt(2)]
    -0.07634344129,
    0.12761515925,
    -0.13160211318,
    0.14201768231,
    -0.16623355371,
    0.20001226398,
    -0.25000821084,
    0.33333331712,
)
TANH = (  # (tanh(x) - x)/x^3 in z = x^2, |x| <= 0.632
    0.00212273864,
    -0.00815627185,
    0.0216926032,
    -0.05394537761,
    0.13333195904,
    -0.33333330571,
)
ERF = (  # erf(x)/x - 1 in z = x^2, |x| <= 1
    7.88911502e-05,
    -0.000802083993,
    0.00518953519,
    -0.02685444451,
    0.11283600174,
    -0.37612627136,
    0.12837916591,
)
LOG_ERFC = (  # log(erfc(x)), 1 <= x <= 4
    2.51373935e-07,
    -2.53154727e-05,
    0.000463792012,
    -0.0042823960505,
    0.02537358339,
    -0.10863903347,
    -0.63303958432,
    -1.12966116959,
    0.000204362288,
)

LOG2_E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 0.693145751953125, 1.42860682030941723e-06
LOG10_E, SQRT_HALF = 0.4342944819032518, 0.7071067811865476


def _scaled(b: Function, p: Value, n: Value) -> Value:
    """``p * 2**n`` for an integral float ``n`` within -252..254, rounded once: two steps reach denormals and infinity."""
    whole = n.convert("fptosi", like(n.type, "i32"))
    first = b.binary("ashr", whole, 1)
    second = whole - first
    for part in (first, second):
        p = p * ((part + 127) << 23).convert("bitcast", p.type)
    return p


def _keep_nan(x: Value, result: Value) -> Value:
    return x.compare("uno", x).select(x, result)


def _clamped(b: Function, x: Value, low: float, high: float) -> Value:
    above = x.compare("olt", low).select(b.const(low, x.type), x)
    return above.compare("ogt", high).select(b.const(high, x.type), above)


def exp2(b: Function, x: Value) -> Value:
    y = _clamped(b, x, -151.0, 129.0)
    n = b.intrinsic("rint", y)
    f = y - n
    p = b.multiply_add(f, b.polynomial(f, EXP2), 1.0)
    return _keep_nan(x, _scaled(b, p, n))


def exp(b: Function, x: Value) -> Value:
    y = _clamped(b, x, -105.0, 89.0)
    n = b.intrinsic("rint", y * LOG2_E)
    r = b.multiply_add(n, b.const(-LN2_HIGH, x.type), y)
    r = b.multiply_add(n, b.const(-LN2_LOW, x.type), r)
    p = b.multiply_add(r * r, b.polynomial(r, EXP), r) + 1.0
    return _keep_nan(x, _scaled(b, p, n))


def _split_log(b: Function, x: Value) -> tuple[Value, Value, Value]:
    """``(e, f, log(1+f) - f)`` with ``x = 2**e (1+f)`` and 1+f in [sqrt(1/2), sqrt(2))."""
    small = x.compare("olt", 1.1754943508222875e-38)
    bits = small.select(x * 8388608.0, x).convert("bitcast", like(x.type, "i32"))
    # the exponent counts from sqrt(1/2), whose bits are 0x3f3504f3
    shifted = bits - 0x3F3504F3
    e = b.binary("ashr", shifted, 23)
    m = ((shifted & 0x007FFFFF) + 0x3F3504F3).convert("bitcast", x.type)
    e = small.select(e - 23, e).convert("sitofp", x.type)
    f = m - 1.0
    z = f * f
    return e, f, b.multiply_add(f * z, b.polynomial(f, LOG), z * -0.5)


def _log_edges(b: Function, x: Value, result: Value) -> Value:
    result = x.compare("oeq", float("inf")).select(x, result)
    result = x.compare("oeq", 0.0).select(b.const(float("-inf"), x.type), result)
    return x.compare("ult", 0.0).select(b.const(float("nan"), x.type), result)


def log(b: Function, x: Value) -> Value:
    e, f, rest = _split_log(b, x)
    low = b.multiply_add(e, b.const(LN2_LOW, x.type), rest)
    return _log_edges(b, x, b.multiply_add(e, b.const(LN2_HIGH, x.type), f + low))


def _scaled_log(
    factor_high: float, factor_low: float, per_octave: float
) -> Callable[[Function, Value], Value]:
    """Log to another base: ``factor`` (in two parts) times the natural one, plus ``per_octave`` for each doubling."""

    def body(b: Function, x: Value) -> Value:
        e, f, rest = _split_log(b, x)
        # f is split so that its product with the high part of the factor is exact
        high = (f.convert("bitcast", like(x.type, "i32")) & 0xFFFFF000 - (1 << 32)).convert("bitcast", x.type)
        low = (f - high) + rest
        tail = b.multiply_add(f + rest, b.const(factor_low, x.type), low * factor_high)
        whole = b.multiply_add(e, b.const(per_octave, x.type), high * factor_high)
        return _log_edges(b, x, whole + tail)

    return body


log2 = _scaled_log(1.44269180297851562, 3.23791044778e-06, 1.0)
log10 = _scaled_log(0.43429434299468994, 1.38908519e-07, 0.30102999566398120)


def tanh(b: Function, x: Value) -> Value:
    a = b.intrinsic("fabs", x)
    z = x * x
    near = b.multiply_add(x * z, b.polynomial(z, TANH), x)
    e = exp(b, _clamped(b, a, 0.0, 20.0) * 2.0)
    far = b.intrinsic("copysign", 1.0 - 2.0 / (e + 1.0), x)
    return _keep_nan(x, a.compare("olt", 0.625).select(near, far))


def sigmoid(b: Function, x: Value) -> Value:
    e = exp(b, -b.intrinsic("fabs", x))
    return x.compare("olt", 0.0).select(e, 1.0) / (e + 1.0)


def erf(b: Function, x: Value) -> Value:
    a = b.intrinsic("fabs", x)
    z = x * x
    near = b.multiply_add(x, b.polynomial(z, ERF), x)
    beyond = 1.0 - exp(b, b.polynomial(_clamped(b, a, 1.0, 4.0), LOG_ERFC))
    far = b.intrinsic("copysign", beyond, x)
    return _keep_nan(x, a.compare("olt", 1.0).select(near, far))


def rsqrt(b: Function, x: Value) -> Value:
    return 1.0 / b.intrinsic("sqrt", x)


def reciprocal(b: Function, x: Value) -> Value:
    return 1.0 / x


def remainder(b: Function, x: Value, y: Value) -> Value:
    return b.emit(x.type, f"frem {x.type} {x.text}, {y.text}")


def floor_division(b: Function, x: Value, y: Value) -> Value:
    return b.intrinsic("floor", x / y)


def floor_remainder(b: Function, x: Value, y: Value) -> Value:
    return x - floor_division(b, x, y) * y


def truncated_division(b: Function, x: Value, y: Value) -> Value:
    return b.intrinsic("trunc", x / y)


def _direct(intrinsic: str) -> Callable[..., Value]:
    return lambda b, *x: b.intrinsic(intrinsic, *x)


def _extremum(kind: str) -> Callable[..., Value]:
    return lambda b, x, y: b.extremum(kind, x, y)


Body = Callable[..., Value]

POLYNOMIALS: dict[str, Body] = {
    "exp": exp,
    "exp2": exp2,
    "log": log,
    "log2": log2,
    "log10": log10,
    "tanh": tanh,
    "erf": erf,
}

DOUBLE: dict[str, str] = {
    "tanh": "tanh",
    "erf": "erf",
}  # not LLVM intrinsics everywhere: called from the C library

ANY_FLOAT: dict[str, Body] = {
    "exp": _direct("exp"),
    "exp2": _direct("exp2"),
    "exp10": _direct("exp10"),
    "log": _direct("log"),
    "log2": _direct("log2"),
    "log10": _direct("log10"),
    "sin": _direct("sin"),
    "cos": _direct("cos"),
    "tan": _direct("tan"),
    "pow": _direct("pow"),
    "sqrt": _direct("sqrt"),
    "rsqrt": rsqrt,
    "rcp": reciprocal,
    "sigmoid": sigmoid,
    "floor": _direct("floor"),
    "ceil": _direct("ceil"),
    "round": _direct("roundeven"),
    "trunc": _direct("trunc"),
    "abs": _direct("fabs"),
    "fma": _direct("fma"),
    "min": _extremum("min"),
    "max": _extremum("max"),
    "minimum": _direct("minimum"),
    "maximum": _direct("maximum"),
    "floordiv": floor_division,
    "floormod": floor_remainder,
    "truncdiv": truncated_division,
    "truncmod": remainder,
}


def is_nan(b: Function, x: Value) -> Value:
    return x.compare("uno", x)


def is_infinite(b: Function, x: Value) -> Value:
    return b.intrinsic("fabs", x).compare("oeq", float("inf"))


def is_finite(b: Function, x: Value) -> Value:
    return b.intrinsic("fabs", x).compare("olt", float("inf"))


TESTS: dict[str, Body] = {"isnan": is_nan, "isinf": is_infinite, "isfinite": is_finite}


def popcount(b: Function, x: Value) -> Value:
    return b.intrinsic("ctpop", x)


def _with_flag(intrinsic: str) -> Body:
    def body(b: Function, x: Value) -> Value:
        return b.call(f"llvm.{intrinsic}.{x.type}", x.type, x, b.const(0, "i1"))

    return body


INTEGERS: dict[str, Body] = {"popcount": popcount, "clz": _with_flag("ctlz"), "abs": _with_flag("abs")}

ARITY = {"fma": 3} | dict.fromkeys(
    ("pow", "min", "max", "minimum", "maximum", "floordiv", "floormod", "truncdiv", "truncmod"), 2
)
LLVM_TYPES = {"float32": "float", "float64": "double"}


def define(name: str, operation: str, type_name: str) -> Function | None:
    """The function ``tile.<operation>.<type>``, or None if there is none of that name."""
    type = LLVM_TYPES.get(type_name)
    if type is None:
        return _integer(name, operation, type_name)
    arity = ARITY.get(operation, 1)
    result = "i1" if operation in TESTS else type
    b = Function(name, result, tuple((type, f"x{i}") for i in range(arity)))
    arguments = [b.argument(i) for i in range(arity)]
    if operation in TESTS:
        return b.give(TESTS[operation](b, *arguments))
    if type == "float" and operation in POLYNOMIALS:
        return b.give(POLYNOMIALS[operation](b, *arguments))
    if operation in DOUBLE:
        return b.give(b.call(DOUBLE[operation], type, *arguments))
    if operation == "sigmoid" and type == "double":
        return b.give(1.0 / (b.intrinsic("exp", -arguments[0]) + 1.0))
    if operation in ANY_FLOAT:
        return b.give(ANY_FLOAT[operation](b, *arguments))
    return None


def _integer(name: str, operation: str, type_name: str) -> Function | None:
    bits = type_name.removeprefix("u").removeprefix("int")
    if not bits.isdigit():
        return None
    type = f"i{bits}"
    if operation == "pow":
        return _integer_power(name, type)
    if operation not in INTEGERS:
        return None
    b = Function(name, type, ((type, "x0"),))
    return b.give(INTEGERS[operation](b, b.argument(0)))


def _integer_power(name: str, type: str) -> Function:
    """By squaring, modulo 2**bits. A negative exponent gives 0, and 1 or -1 for a base of 1 or -1 (as division would)."""
    b = Function(name, type, ((type, "x0"), (type, "x1")), attributes="")
    base, exponent = b.argument(0), b.argument(1)
    negative = exponent.compare("slt", 0)
    magnitude = base.compare("eq", 1).select(1, base.compare("eq", -1).select(base, 0, type), type)
    odd = (exponent & 1).compare("ne", 0)
    inverse = odd.select(magnitude, magnitude * magnitude)
    b.effect(f"br i1 {negative.text}, label %done, label %loop")
    b.label("loop")
    e = b.emit(type, f"phi {type} [ {exponent.text}, %entry ], [ %halved, %loop ]")
    x = b.emit(type, f"phi {type} [ {base.text}, %entry ], [ %squared, %loop ]")
    r = b.emit(type, f"phi {type} [ 1, %entry ], [ %product, %loop ]")
    bit = (e & 1).compare("ne", 0)
    factor = bit.select(x, 1)
    b.effect(f"%product = mul {type} {r.text}, {factor.text}")
    b.effect(f"%squared = mul {type} {x.text}, {x.text}")
    b.effect(f"%halved = lshr {type} {e.text}, 1")
    b.effect(f"%more = icmp ne {type} %halved, 0")
    b.effect("br i1 %more, label %loop, label %done")
    b.label("done")
    out = b.emit(type, f"phi {type} [ {inverse.text}, %entry ], [ %product, %loop ]")
    return b.give(out)
