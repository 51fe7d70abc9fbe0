"""Conversions between numbers that LLVM's plain instructions leave undefined or round twice."""

from __future__ import annotations

from .mathematics import LLVM_TYPES
from .writer import Function


def define(name: str, operation: str, type_name: str) -> Function | None:
    """``tile.to_<integer>.<float>``: rounded to zero, saturated, 0 for NaN. ``tile.odd.float64``: see ``_odd``."""
    if operation == "odd" and type_name == "float64":
        return _odd(name)
    if not operation.startswith("to_") or type_name not in LLVM_TYPES:
        return None
    to, type = operation.removeprefix("to_"), LLVM_TYPES[type_name]
    bits = to.removeprefix("u").removeprefix("int")
    how = "fptoui" if to.startswith("u") else "fptosi"
    suffix = {"float": "f32", "double": "f64"}[type]
    b = Function(name, f"i{bits}", ((type, "x"),))
    return b.give(b.call(f"llvm.{how}.sat.i{bits}.{suffix}", f"i{bits}", b.argument(0)))


def _odd(name: str) -> Function:
    """float64 to float32, rounded to odd: a second rounding to a narrower float then gives what one rounding would."""
    b = Function(name, "float", (("double", "x"),))
    x = b.argument(0)
    near = x.convert("fptrunc", "float")
    back = near.convert("fpext", "double")
    bits = near.convert("bitcast", "i32")
    beyond = b.intrinsic("fabs", back).compare("ogt", b.intrinsic("fabs", x))
    inexact = (beyond.select(bits - 1, bits) | 1).convert("bitcast", "float")
    return b.give(back.compare("ueq", x).select(near, inexact))
