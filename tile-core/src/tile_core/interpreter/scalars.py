"""Scalar operations on numpy values: the exact meaning of every operator and function of the language."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dtypes import DType
from ..expr.make import wrapped

Array = NDArray[Any]


def convert(value: Array, source: DType, to: DType) -> Array:
    """``value`` of type ``source`` as ``to``: floats round to nearest even, float to integer rounds to zero."""
    if source == to:
        return value
    if to.is_bool:
        return np.asarray(value) != 0
    if source.is_float and to.is_integer:
        value = np.trunc(np.asarray(value).astype(np.float64)).astype(np.int64)
    if to.is_integer and to.bits < 8:
        return narrow(np.asarray(value).astype(np.int64), to)
    if source.is_float and to.is_float and to.bits < 16 and source.bits < 32:
        value = np.asarray(value).astype(np.float32)
    return np.asarray(value).astype(to.as_numpy())


def narrow(value: Array, to: DType) -> Array:
    """Wrap int64 values to an integer type of fewer than 8 bits."""
    mask = (1 << to.bits) - 1
    low = value & mask
    if to.kind == "int":
        low = np.where(low >> (to.bits - 1), low - (1 << to.bits), low)
    return low.astype(np.int8 if to.kind == "int" else np.uint8).astype(to.as_numpy())


def _trunc_div(a: Array, b: Array) -> Array:
    quotient = np.abs(a) // np.abs(b)
    return np.where((a < 0) == (b < 0), quotient, -quotient).astype(a.dtype)


ARITHMETIC: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "//": np.floor_divide,
    "%": np.mod,
    "truncdiv": _trunc_div,
    "truncmod": lambda a, b: a - _trunc_div(a, b) * b,
    "min": np.minimum,
    "max": np.maximum,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
    "<<": np.left_shift,
    ">>": np.right_shift,
}

COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
}

FLOATS: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "//": lambda a, b: np.floor(a / b),
    "%": lambda a, b: a - np.floor(a / b) * b,
    "truncdiv": lambda a, b: np.trunc(a / b),
    "truncmod": np.fmod,
    "min": np.fmin,
    "max": np.fmax,
}


def working(type: DType) -> Any:
    """The numpy type in which one operation on ``type`` is done; the result is rounded to ``type``."""
    return np.float64 if type.bits == 64 else np.float32


def binary(op: str, a: Array, b: Array, type: DType) -> Array:
    """``a op b`` of operands of ``type``."""
    if op in COMPARISONS:
        if type.is_float and type.name not in ("float16", "float32", "float64"):
            a, b = np.asarray(a).astype(np.float32), np.asarray(b).astype(np.float32)
        return COMPARISONS[op](a, b)
    if type.is_float:
        work = working(type)
        return FLOATS[op](np.asarray(a).astype(work), np.asarray(b).astype(work)).astype(type.as_numpy())
    if type.bits < 8 and not type.is_bool:
        wide = ARITHMETIC[op](np.asarray(a).astype(np.int64), np.asarray(b).astype(np.int64))
        return narrow(wide, type)
    if op == "min" and type.is_bool:
        op = "&"
    return ARITHMETIC[op](a, b)


def unary(op: str, a: Array, type: DType) -> Array:
    if op == "not":
        return np.logical_not(a)
    if type.is_float:
        return (-np.asarray(a).astype(working(type))).astype(type.as_numpy())
    if type.bits < 8:
        wide = np.asarray(a).astype(np.int64)
        return narrow(-wide if op == "-" else ~wide, type)
    return np.negative(a) if op == "-" else np.invert(a)


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


REAL: dict[str, Callable[..., Array]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "exp10": lambda x: np.power(np.asarray(10, x.dtype), x),
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "erf": lambda x: _erf(x),
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
    "rcp": lambda x: 1 / x,
}

PAIRS: dict[str, Callable[..., Array]] = {
    "ieee_add": np.add,
    "ieee_sub": np.subtract,
    "ieee_mul": np.multiply,
    "ieee_div": np.divide,
    "ieee_sqrt": np.sqrt,
    "ieee_rcp": lambda x: 1 / x,
    "ieee_rsqrt": lambda x: (1 / np.sqrt(x.astype(np.float64))).astype(x.dtype),
}

TESTS: dict[str, Callable[[Array], Array]] = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}


def function(name: str, arguments: list[Array], type: DType, result: DType) -> Array:
    """A scalar function of arguments of ``type``."""
    if name in ("popcount", "clz"):
        return _bits(name, arguments[0], type)
    if name == "abs" and not type.is_float:
        return np.abs(arguments[0]) if type.kind == "int" else arguments[0]
    if name == "pow" and not type.is_float:
        return np.power(arguments[0], arguments[1])
    work = working(type)
    values = [np.asarray(a).astype(work) for a in arguments]
    if name in TESTS:
        return TESTS[name](values[0])
    return _real(name.removeprefix("__"), values, work).astype(result.as_numpy())


def _real(name: str, values: list[Array], work: Any) -> Array:
    match name:
        case "fma":
            # exact for float32: the product of two has 48 bits, float64 holds 53
            a, b, c = (v.astype(np.float64) for v in values)
            return (a * b + c).astype(work)
        case "abs":
            return np.abs(values[0])
        case "pow":
            return np.power(values[0], values[1])
        case "erf":
            return REAL["erf"](values[0]).astype(work)
        case _:
            rule = PAIRS.get(name) or REAL[name]
            # transcendental functions of float32 are taken in float64, so that the oracle is within half an ulp
            exact = rule(*(v.astype(np.float64) for v in values)) if name in REAL else rule(*values)
            return exact.astype(work)


def _bits(name: str, value: Array, type: DType) -> Array:
    def one(v: int) -> int:
        bits = wrapped(int(v), type) & ((1 << type.bits) - 1)
        return bin(bits).count("1") if name == "popcount" else type.bits - bits.bit_length()

    return np.vectorize(one, otypes=[np.int64])(value).astype(type.as_numpy())
