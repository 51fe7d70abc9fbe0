"""Scalar mathematics of kernels. Every function takes and gives single values, not tiles."""

from __future__ import annotations

import math
from typing import Any

from ..dtypes import DType
from ..dtypes import dtype as _dtype
from ..errors import KernelError
from ..expr import Const, Expr, binary, bitcast, call, expr, select
from ..expr import cast as _cast
from ..expr import ceildiv as _ceildiv


def exp(x: Any) -> Expr:
    """E to the power x."""
    return call("exp", x)


def exp2(x: Any) -> Expr:
    """2 to the power x."""
    return call("exp2", x)


def exp10(x: Any) -> Expr:
    """10 to the power x."""
    return call("exp10", x)


def log(x: Any) -> Expr:
    """Natural logarithm; NaN below zero, -inf at zero."""
    return call("log", x)


def log2(x: Any) -> Expr:
    """Logarithm to base 2."""
    return call("log2", x)


def log10(x: Any) -> Expr:
    """Logarithm to base 10."""
    return call("log10", x)


def sqrt(x: Any) -> Expr:
    """Square root, correctly rounded."""
    return call("sqrt", x)


def rsqrt(x: Any) -> Expr:
    """1 / sqrt(x)."""
    return call("rsqrt", x)


def sin(x: Any) -> Expr:
    """Sine of x radians."""
    return call("sin", x)


def cos(x: Any) -> Expr:
    """Cosine of x radians."""
    return call("cos", x)


def tan(x: Any) -> Expr:
    """Tangent of x radians."""
    return call("tan", x)


def tanh(x: Any) -> Expr:
    """Hyperbolic tangent."""
    return call("tanh", x)


def sigmoid(x: Any) -> Expr:
    """1 / (1 + exp(-x))."""
    return call("sigmoid", x)


def erf(x: Any) -> Expr:
    """Error function."""
    return call("erf", x)


def floor(x: Any) -> Expr:
    """Greatest whole number not above x, as a float."""
    return call("floor", x)


def ceil(x: Any) -> Expr:
    """Least whole number not below x, as a float."""
    return call("ceil", x)


def round(x: Any) -> Expr:
    """Nearest whole number, ties to even, as a float."""
    return call("round", x)


def trunc(x: Any) -> Expr:
    """X without its fraction, as a float."""
    return call("trunc", x)


def abs(x: Any) -> Expr:
    """Absolute value."""
    return call("abs", x)


def pow(x: Any, y: Any) -> Expr:
    """X to the power y: ``pow(x, 0)`` is 1. A negative power of an integer is computed in float32."""
    base, power = expr(x), expr(y)
    if (
        base.dtype.is_integer
        and power.dtype.is_integer
        and not (isinstance(power, Const) and power.value >= 0)
    ):
        return call("pow", _cast(base, "float32"), _cast(power, "float32"))
    return call("pow", x, y)


def fma(x: Any, y: Any, z: Any) -> Expr:
    """``x * y + z`` with one rounding."""
    return call("fma", x, y, z)


def isnan(x: Any) -> Expr:
    """Whether x is NaN."""
    return call("isnan", x)


def isinf(x: Any) -> Expr:
    """Whether x is an infinity."""
    return call("isinf", x)


def isfinite(x: Any) -> Expr:
    """Whether x is neither NaN nor an infinity."""
    return call("isfinite", x)


def max(a: Any, b: Any, *more: Any) -> Any:
    """The greatest value; of two floats the one that is not NaN."""
    return _folded("max", a, b, *more)


def min(a: Any, b: Any, *more: Any) -> Any:
    """The least value; of two floats the one that is not NaN."""
    return _folded("min", a, b, *more)


def _folded(op: str, *values: Any) -> Any:
    if all(isinstance(v, (int, float)) for v in values):
        import builtins

        return (builtins.max if op == "max" else builtins.min)(values)
    out = values[0]
    for v in values[1:]:
        out = binary(op, out, v)
    return out


def clamp(x: Any, low: Any, high: Any) -> Expr:
    """X limited to [low, high]; NaN stays NaN."""
    value = expr(x)
    limited = binary("min", binary("max", value, low), high)
    return select(call("isnan", value), value, limited, lazy=False) if value.dtype.is_float else limited


def if_then_else(condition: Any, then: Any, other: Any) -> Any:
    """``then`` where the condition holds, else ``other``; the side that is not chosen is not evaluated."""
    if isinstance(condition, (bool, int)):
        return then if condition else other
    return select(condition, then, other)


def Select(condition: Any, then: Any, other: Any) -> Expr:
    """As ``if_then_else``, but both sides are evaluated."""
    return select(condition, then, other, lazy=False)


def cast(x: Any, dtype: Any) -> Expr:
    """X converted to a type: floats round to nearest even, float to integer rounds to zero."""
    return _cast(x, dtype)


Cast = cast


def reinterpret(x: Any, dtype: Any) -> Expr:
    """The bits of x read as another type of the same width.

    Raises:
        KernelError: the widths differ.
    """
    if isinstance(x, (str, DType)):  # the older order of arguments
        x, dtype = dtype, x
    return bitcast(x, dtype)


def infinity(dtype: Any) -> Expr:
    """Plus infinity of a float type.

    Raises:
        KernelError: the type has no infinity.
    """
    type = _dtype(dtype)
    if not type.is_float or type.name in NO_INFINITY:
        raise KernelError(f"{type} has no infinity", help="use T.max_value(dtype)")
    return Const(math.inf, type)


NO_INFINITY = frozenset(
    (
        "float8_e4m3fn",
        "float8_e4m3b11fnuz",
        "float8_e4m3fnuz",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float6_e2m3fn",
        "float6_e3m2fn",
        "float4_e2m1fn",
        "float4_e2m1_unpacked",
    )
)

GREATEST: dict[str, float] = {
    "float16": 65504.0,
    "bfloat16": (2 - 2**-7) * 2.0**127,
    "float32": (2 - 2**-23) * 2.0**127,
    "tfloat32": (2 - 2**-23) * 2.0**127,
    "float64": (2 - 2**-52) * 2.0**1023,
    "float8_e3m4": 15.5,
    "float8_e4m3": 240.0,
    "float8_e4m3b11fnuz": 30.0,
    "float8_e4m3fn": 448.0,
    "float8_e4m3fnuz": 240.0,
    "float8_e5m2": 57344.0,
    "float8_e5m2fnuz": 57344.0,
    "float8_e8m0fnu": 2.0**127,
    "float6_e2m3fn": 7.5,
    "float6_e3m2fn": 28.0,
    "float4_e2m1fn": 6.0,
    "float4_e2m1_unpacked": 6.0,
}


def max_value(dtype: Any) -> Expr:
    """The greatest finite value of a type."""
    type = _dtype(dtype)
    if type.is_float:
        return Const(GREATEST[type.name], type)
    if type.is_bool:
        return Const(True, type)
    return Const(2 ** (type.bits - (type.kind == "int")) - 1, type)


def min_value(dtype: Any) -> Expr:
    """The least finite value of a type."""
    type = _dtype(dtype)
    if type.is_float:
        return Const(2.0**-127 if type.name == "float8_e8m0fnu" else -GREATEST[type.name], type)
    return Const(-(2 ** (type.bits - 1)) if type.kind == "int" else type.is_bool and False, type)


def ceildiv(a: Any, b: Any) -> Any:
    """``ceil(a / b)`` of integers, b positive; a number if both are numbers."""
    return _ceildiv(a, b)


def floordiv(a: Any, b: Any) -> Any:
    """``a // b``, rounding to minus infinity."""
    return a // b if isinstance(a, int) and isinstance(b, int) else binary("//", a, b)


def floormod(a: Any, b: Any) -> Any:
    """``a % b`` with the sign of b."""
    return a % b if isinstance(a, int) and isinstance(b, int) else binary("%", a, b)


def truncdiv(a: Any, b: Any) -> Expr:
    """``a / b`` of integers, rounding to zero as C does."""
    return binary("truncdiv", a, b)


def truncmod(a: Any, b: Any) -> Expr:
    """The remainder of ``truncdiv``, with the sign of a."""
    return binary("truncmod", a, b)


def align_up(a: Any, b: Any) -> Any:
    """The least multiple of b that is not below a."""
    return _ceildiv(a, b) * b


def shift_left(a: Any, b: Any) -> Expr:
    """``a << b``."""
    return binary("<<", a, b)


def shift_right(a: Any, b: Any) -> Expr:
    """``a >> b``: arithmetic for signed types, logical for unsigned ones."""
    return binary(">>", a, b)


def bitwise_and(a: Any, b: Any) -> Expr:
    """``a & b``."""
    return binary("&", a, b)


def bitwise_or(a: Any, b: Any) -> Expr:
    """``a | b``."""
    return binary("|", a, b)


def bitwise_xor(a: Any, b: Any) -> Expr:
    """``a ^ b``."""
    return binary("^", a, b)


def bitwise_not(a: Any) -> Expr:
    """``~a``."""
    return ~expr(a)


def popcount(x: Any) -> Expr:
    """Number of one bits of an integer."""
    return call("popcount", x)


def clz(x: Any) -> Expr:
    """Number of leading zero bits of an integer; its width for 0."""
    return call("clz", x)


def _rounded(name: str, rounding_mode: str, *values: Any) -> Expr:
    if rounding_mode != "rn":
        raise KernelError(
            f"{name} with rounding mode {rounding_mode!r} is not there",
            help='"rn" (to nearest, ties to even) is',
        )
    return call(name, *values)


def ieee_add(x: Any, y: Any, rounding_mode: str = "rn") -> Expr:
    """``x + y`` with one rounding to nearest even, never contracted."""
    return _rounded("ieee_add", rounding_mode, x, y)


def ieee_sub(x: Any, y: Any, rounding_mode: str = "rn") -> Expr:
    """``x - y`` with one rounding, never contracted."""
    return _rounded("ieee_sub", rounding_mode, x, y)


def ieee_mul(x: Any, y: Any, rounding_mode: str = "rn") -> Expr:
    """``x * y`` with one rounding, never contracted."""
    return _rounded("ieee_mul", rounding_mode, x, y)


def ieee_fdiv(x: Any, y: Any, rounding_mode: str = "rn") -> Expr:
    """``x / y``, correctly rounded."""
    return _rounded("ieee_div", rounding_mode, x, y)


def ieee_fmaf(x: Any, y: Any, z: Any, rounding_mode: str = "rn") -> Expr:
    """``x * y + z`` with one rounding."""
    return _rounded("fma", rounding_mode, x, y, z)


def ieee_fsqrt(x: Any, rounding_mode: str = "rn") -> Expr:
    """Square root, correctly rounded."""
    return _rounded("ieee_sqrt", rounding_mode, x)


def ieee_frcp(x: Any, rounding_mode: str = "rn") -> Expr:
    """``1 / x``, correctly rounded."""
    return _rounded("ieee_rcp", rounding_mode, x)


def ieee_frsqrt(x: Any, rounding_mode: str = "rn") -> Expr:
    """``1 / sqrt(x)``, correctly rounded."""
    return _rounded("ieee_rsqrt", rounding_mode, x)
