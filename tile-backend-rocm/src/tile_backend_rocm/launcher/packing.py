"""Values of a call as the words that a kernel's parameters are read from: parameters and numbers in, C values out."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from tile_core.backend import LaunchParam
from tile_core.dtypes import dtype

INTEGERS = {
    **{f"int{n}": getattr(ctypes, f"c_int{n}") for n in (8, 16, 32, 64)},
    **{f"uint{n}": getattr(ctypes, f"c_uint{n}") for n in (8, 16, 32, 64)},
    "bool": ctypes.c_bool,
}
FLOATS = {"float32": ctypes.c_float, "tfloat32": ctypes.c_float, "float64": ctypes.c_double}
ADDRESSES = ("tensor", "pointer")


def packed(params: Sequence[LaunchParam], values: Sequence[int | float]) -> list[Any]:
    """One C value for each parameter, of its own type. ``values`` are checked ones."""
    return [_value(p, v) for p, v in zip(params, values, strict=True)]


def _value(p: LaunchParam, value: int | float) -> Any:
    if p.kind in ADDRESSES:
        return ctypes.c_void_p(int(value))
    if p.dtype in INTEGERS:
        return INTEGERS[p.dtype](int(value))
    if p.dtype in FLOATS:
        return FLOATS[p.dtype](value)
    return _narrow(p.dtype, value)


def _narrow(name: str, value: int | float) -> Any:
    """A number as the bits of a narrow type."""
    import numpy as np

    data = np.array(value).astype(dtype(name).as_numpy()).tobytes()
    return (ctypes.c_ubyte * len(data))(*data)
