"""Scalar types: width, kind, and the names that numpy, torch and DLPack give them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from .errors import KernelError, did_you_mean

KINDS = ("bool", "int", "uint", "float", "handle")


@dataclass(frozen=True)
class DType:
    """A scalar type, or a short vector of one when ``lanes`` > 1. ``bits`` is the width of one lane."""

    name: str
    kind: str
    bits: int
    lanes: int = 1

    def __post_init__(self) -> None:
        if self.kind not in KINDS or self.bits < 1 or self.lanes < 1:
            raise ValueError(f"not a type: {self!r}")

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"T.{self.name}"

    def __call__(self, value: Any) -> Any:
        """``T.float16(x)`` converts a value. Inside a kernel only."""
        convert = getattr(value, "astype", None)
        if convert is None:
            raise KernelError(f"T.{self.name}({value!r}) makes a value of a kernel: call it inside a kernel")
        return convert(self)

    @cached_property
    def is_float(self) -> bool:
        return self.kind == "float"

    @cached_property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @cached_property
    def is_bool(self) -> bool:
        return self.kind == "bool"

    @cached_property
    def integers(self) -> range:
        """The numbers that an integer type, bool or an address can hold."""
        if self.kind == "int":
            return range(-(1 << (self.bits - 1)), 1 << (self.bits - 1))
        return range(1 << self.bits)

    def holds(self, other: DType) -> bool:
        """Whether both are integer types (or bool), and each number of ``other`` is one of this type too."""
        if not (self.is_integer and (other.is_integer or other.is_bool)) or self.lanes != other.lanes:
            return False
        return other.integers.start in self.integers and other.integers[-1] in self.integers

    @cached_property
    def bytes(self) -> int:
        """Bytes of one element as it lies in an array (a sub-byte element takes a whole byte there)."""
        return max(1, self.bits * self.lanes // 8)

    @cached_property
    def scalar(self) -> DType:
        return self if self.lanes == 1 else dtype(self.name.rsplit("x", 1)[0])

    def vector(self, lanes: int) -> DType:
        return self if lanes == 1 else replace(self, name=f"{self.scalar.name}x{lanes}", lanes=lanes)

    def as_torch(self) -> Any:
        """The torch dtype. Imports torch."""
        import importlib

        return getattr(importlib.import_module("torch"), TORCH_NAMES.get(self.name, self.name))

    def as_numpy(self) -> Any:
        """The numpy dtype of an array of this type; ml_dtypes' for those that numpy lacks. Imports numpy.

        A type of fewer than 8 bits takes a byte an element.
        """
        import numpy as np

        name = NUMPY_NAMES.get(self.name, self.name)
        if self.lanes > 1:
            return np.dtype((self.scalar.as_numpy(), (self.lanes,)))
        try:
            return np.dtype(name)
        except TypeError:
            import ml_dtypes

            return np.dtype(getattr(ml_dtypes, name))


def _table() -> dict[str, DType]:
    out = {"bool": DType("bool", "bool", 1), "handle": DType("handle", "handle", 64)}
    for kind in ("int", "uint"):
        out |= {f"{kind}{n}": DType(f"{kind}{n}", kind, n) for n in (1, 2, 4, 8, 16, 32, 64)}
    for name, bits in FLOATS.items():
        out[name] = DType(name, "float", bits)
    return out


FLOATS = {
    "float16": 16,
    "bfloat16": 16,
    "float32": 32,
    "tfloat32": 32,
    "float64": 64,
    "float8_e3m4": 8,
    "float8_e4m3": 8,
    "float8_e4m3b11fnuz": 8,
    "float8_e4m3fn": 8,
    "float8_e4m3fnuz": 8,
    "float8_e5m2": 8,
    "float8_e5m2fnuz": 8,
    "float8_e8m0fnu": 8,
    "float6_e2m3fn": 6,
    "float6_e3m2fn": 6,
    "float4_e2m1fn": 4,
    "float4_e2m1_unpacked": 4,
}

ALIASES = {
    "half": "float16",
    "fp16": "float16",
    "f16": "float16",
    "bf16": "bfloat16",
    "float": "float32",
    "fp32": "float32",
    "f32": "float32",
    "double": "float64",
    "f64": "float64",
    "tf32": "tfloat32",
    "int": "int32",
    "uint": "uint32",
    "e4m3_float8": "float8_e4m3fn",
    "e5m2_float8": "float8_e5m2",
    "bool_": "bool",
    "boolean": "bool",
}

NUMPY_NAMES = {
    "handle": "uint64",
    "tfloat32": "float32",
    "float4_e2m1_unpacked": "float4_e2m1fn",
    "int1": "int8",
    "uint1": "uint8",
}

TORCH_NAMES = {"tfloat32": "float32", "float4_e2m1fn": "float4_e2m1fn_x2"}

ALL: dict[str, DType] = _table()

_LANES = re.compile(r"(.+?)x(\d+)$")


def dtype(value: Any) -> DType:
    """The type named by a string, a numpy or torch dtype, a Python type, or a ``DType``.

    Raises:
        KernelError: nothing has that name; the message proposes the nearest one.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, str):
        return _named(value)
    if value in (float, int, bool):
        return _named({float: "float32", int: "int32", bool: "bool"}[value])
    # numpy's scalar classes have __name__, its dtypes have .name, torch prints "torch.float16"
    name = (
        getattr(value, "name", None) or getattr(value, "__name__", None) or str(value).removeprefix("torch.")
    )
    return _named(str(name))


@lru_cache(maxsize=256)
def _named(name: str) -> DType:
    name = ALIASES.get(name, name)
    if name in ALL:
        return ALL[name]
    if (m := _LANES.match(name)) and m[1] in ALL and int(m[2]) > 1:
        return ALL[m[1]].vector(int(m[2]))
    raise KernelError(f"no type is named {name!r}", help=did_you_mean(name, [*ALL, *ALIASES]))


BOOL, INT32, INT64 = ALL["bool"], ALL["int32"], ALL["int64"]
UINT32, UINT64 = ALL["uint32"], ALL["uint64"]
FLOAT16, BFLOAT16, FLOAT32, FLOAT64 = ALL["float16"], ALL["bfloat16"], ALL["float32"], ALL["float64"]
HANDLE = ALL["handle"]


def promote(a: DType, b: DType) -> DType:
    """The type that an operation on ``a`` and ``b`` is done in. Both operands are converted to it.

    A float wins over an integer; the wider of two floats wins, float32 when neither holds the other
    (float16 with bfloat16, two 8-bit formats); a signed and an unsigned integer meet in the signed type of the
    wider width.
    """
    if a == b:
        return a
    if a.kind == "handle" or b.kind == "handle":
        raise KernelError(f"no arithmetic on pointers: {a} and {b}")
    if a.is_float != b.is_float:
        return a if a.is_float else b
    if a.is_float:
        wide, narrow = (a, b) if a.bits >= b.bits else (b, a)
        return FLOAT32 if (wide.bits == narrow.bits and wide.bits <= 32) or wide.bits < 16 else wide
    if a.is_bool or b.is_bool:
        return b if a.is_bool else a
    bits = max(a.bits, b.bits)
    return ALL[f"{a.kind if a.kind == b.kind else 'int'}{bits}"]
