"""How values of each type are stored in memory and held in registers, and how one becomes the other.

A float narrower than 32 bits is stored as its bits and held as a float32 that the type can represent; each operation
rounds its result back. An integer narrower than 8 bits is stored and held in a byte and wrapped after each operation.
"""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from .. import _tvm as tvm
from ..dtypes import DType
from ..errors import Unsupported
from ..span import Span
from .nodes import Node


def narrow_float(t: DType) -> bool:
    return t.is_float and t.name not in ("float32", "float64", "tfloat32")


def narrow_integer(t: DType) -> bool:
    return t.is_integer and t.bits < 8


def storage(t: DType, span: Span | None = None) -> str:
    """The TVM type of one element in memory."""
    if t.lanes > 1 or t.kind == "handle":
        raise Unsupported(f"elements of type {t} are not supported on this target", span)
    if t.is_bool:
        return "uint8"
    if t.is_integer:
        return f"{t.kind}{max(8, t.bits)}"
    if narrow_float(t):
        return f"uint{max(8, t.bits) if t.bits != 6 else 8}"
    return "float64" if t.bits == 64 else "float32"


def held(t: DType) -> str:
    """The TVM type of a value in a register."""
    if t.is_bool:
        return "bool"
    return "float32" if narrow_float(t) else storage(t)


def constant(value: int | float | bool, t: DType) -> Node:
    """A value of type ``t``, rounded to it."""
    if t.is_bool:
        return tvm.IntImm("bool", int(bool(value)))
    if t.is_integer:
        return tvm.IntImm(held(t), int(value))
    x = float(value)
    if narrow_float(t):
        with np.errstate(all="ignore"):
            x = float(np.asarray(x, np.float32).astype(numpy_type(t)).astype(np.float32))
    elif held(t) == "float32" and math.isfinite(x):
        with np.errstate(over="ignore"):
            x = float(np.float32(x))
    return tvm.FloatImm(held(t), x)


def numpy_type(t: DType) -> np.dtype:
    """The numpy type whose rounding ``t`` follows."""
    name = {"tfloat32": "float32", "float4_e2m1_unpacked": "float4_e2m1fn"}.get(t.name, t.name)
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def decode(stored: Node, t: DType) -> Node:
    """The value of an element as it was read from memory."""
    if t.is_bool:
        return tvm.NE(stored, tvm.IntImm("uint8", 0))
    if narrow_float(t):
        return tvm.call_pure("float32", f"tile.decode.{t.name}", stored)
    return rounded(stored, t)  # only the low bits of a byte count for a narrower integer


def encode(value: Node, t: DType) -> Node:
    """What is written to memory for a value."""
    if t.is_bool:
        return tvm.Cast("uint8", value)
    if narrow_float(t):
        return tvm.call_pure(storage(t), f"tile.encode.{t.name}", value)
    if narrow_integer(t) and t.name != "int1":  # numpy has no type for it: -1 is stored as int8's
        return tvm.BitwiseAnd(value, tvm.IntImm(held(t), (1 << t.bits) - 1))
    return value


def rounded(value: Node, t: DType) -> Node:
    """The result of an operation, as the type can hold it."""
    if narrow_float(t):
        return tvm.call_pure("float32", f"tile.round.{t.name}", value)
    if not narrow_integer(t):
        return value
    spare = tvm.IntImm(held(t), 8 - t.bits)
    return tvm.RShift(tvm.LShift(value, spare), spare)


def cast(value: Node, source: DType, to: DType) -> Node:
    """A held value of type ``source`` as a held value of type ``to``."""
    if source == to:
        return value
    if to.is_bool:
        return tvm.Not(tvm.EQ(value, zero(source)))  # TVM's NE of floats is false for NaN
    if to.is_integer and source.is_float:
        wide = "int32" if narrow_integer(to) else held(to)
        whole = tvm.call_pure(wide, f"tile.to_{wide}.{held(source)}", value)
        return rounded(whole if wide == held(to) else tvm.Cast(held(to), whole), to)
    if held(source) == "float64" and narrow_float(to):
        value = tvm.call_pure("float32", "tile.odd.float64", value)
    elif held(source) != held(to):
        value = tvm.Cast(held(to), value)
    exact = narrow_integer(to) and source.kind == to.kind and source.bits <= to.bits
    return value if exact else rounded(value, to)


def reinterpreted(bits: Node, source: str, to: str) -> Node:
    """The same bits as another TVM type. TVM refuses some literals: those are computed here."""
    if source == to:
        return bits
    if "float" not in source and "float" not in to:
        return tvm.Cast(to, bits)
    if type(bits) in (tvm.IntImm, tvm.FloatImm):
        with np.errstate(all="ignore"):
            kind = np.dtype(source)
            value = np.array(float(bits.value)) if kind.kind == "f" else np.array(int(bits.value))
            found = value.astype(kind).view(to).item()
        return tvm.FloatImm(to, found) if "float" in to else tvm.IntImm(to, found)
    return tvm.tirx.reinterpret(to, bits)


def zero(t: DType) -> Node:
    return tvm.FloatImm(held(t), 0.0) if t.is_float else tvm.IntImm(held(t), 0)
