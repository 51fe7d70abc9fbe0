"""Tensors of any library as pointer, shape, strides and type; and outputs allocated in the caller's kind."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..dtypes import TORCH_NAMES, dtype
from ..errors import ArgumentError
from ..select import HOST, TensorDevice


@dataclass(frozen=True)
class TensorView:
    """A tensor that was passed. ``strides`` count elements, None: contiguous. ``owner`` keeps the memory alive."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: str
    device: TensorDevice
    writable: bool
    owner: Any

    @property
    def on_host(self) -> bool:
        """Whether it lies in the host's own memory, whichever library it is of."""
        return self.device == HOST or bool(self.device.torch and self.device.torch[0] == "cpu")

    @property
    def contiguous(self) -> bool:
        if self.strides is None:
            return True
        step = 1
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent != 1 and stride != step:
                return 0 in self.shape
            step *= extent
        return True


def is_tensor(value: Any) -> bool:
    """Whether ``value`` is a tensor of some library. Imports none."""
    return _is_torch(value) or hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__")


def view(value: Any, name: str = "argument") -> TensorView:
    """``value`` as a ``TensorView``; nothing is copied.

    Raises:
        ArgumentError: it is no tensor, or has a type that tile does not know.
    """
    if _is_torch(value):
        return _torch(value, name)
    if hasattr(value, "__array_interface__") and hasattr(value, "dtype"):
        return _numpy(value, name)
    if hasattr(value, "__dlpack__"):
        return _dlpack(value, name)
    raise ArgumentError(
        f"{name} is {type(value).__name__}, a tensor is needed",
        help="pass a numpy array, a torch tensor, or anything with __dlpack__",
    )


def _is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _numpy(value: Any, name: str) -> TensorView:
    data, readonly = value.__array_interface__["data"]
    size = value.dtype.itemsize
    if not value.dtype.isnative:
        raise ArgumentError(
            f"{name} has the byte order of another machine: {value.dtype.str}",
            help="convert it: a.astype(a.dtype.newbyteorder('='))",
        )
    if any(s % size for s in value.strides):
        raise ArgumentError(
            f"{name} has strides that are no whole elements", help="pass a copy: numpy.ascontiguousarray"
        )
    strides = None if value.flags.c_contiguous else tuple(s // size for s in value.strides)
    return TensorView(data, value.shape, strides, _dtype_name(value.dtype), HOST, not readonly, value)


@lru_cache(maxsize=64)
def _dtype_name(type: Any) -> str:
    return type.name  # numpy makes the text anew each time


def _torch(value: Any, name: str) -> TensorView:
    torch = sys.modules["torch"]
    if value.is_conj() or value.is_neg() or value.layout != torch.strided:
        raise ArgumentError(
            f"{name} is a lazy or sparse torch tensor", help="pass a plain one: .resolve_conj().contiguous()"
        )
    strides = None if value.is_contiguous() else tuple(value.stride())
    kind = str(value.dtype).removeprefix("torch.")
    return TensorView(
        value.data_ptr(), tuple(value.shape), strides, _TORCH.get(kind, kind), _place(value), True, value
    )


def _place(tensor: Any) -> TensorDevice:
    """Where a torch tensor lives. On the host it may be passed together with arrays of other libraries."""
    where = tensor.device
    if where.type == "cpu":
        return HOST
    hip = sys.modules["torch"].version.hip is not None
    return TensorDevice(torch=(where.type, hip), index=where.index or 0)


_TORCH = {torch: name for name, torch in TORCH_NAMES.items() if name != "tfloat32"}


class _DLTensor(ctypes.Structure):
    """DLPack's DLTensor (dlpack.h, version 0.8 and 1.x)."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


# DLDataTypeCode of dlpack.h
CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}
FLOAT8 = {
    7: "float8_e3m4",
    8: "float8_e4m3",
    9: "float8_e4m3b11fnuz",
    10: "float8_e4m3fn",
    11: "float8_e4m3fnuz",
    12: "float8_e5m2",
    13: "float8_e5m2fnuz",
    14: "float8_e8m0fnu",
}


def _dlpack(value: Any, name: str) -> TensorView:
    capsule = value.__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    try:
        at = pointer(capsule, b"dltensor")
    except ValueError as error:
        raise ArgumentError(f"{name}: its __dlpack__ gives no DLPack tensor") from error
    t = _DLTensor.from_address(at)
    if t.code in FLOAT8:
        kind = FLOAT8[t.code]
    elif t.code in CODES:
        kind = "bool" if t.code == 6 else f"{CODES[t.code]}{t.bits}".replace("bfloat16", "bfloat16")
    else:
        raise ArgumentError(f"{name} has DLPack type code {t.code}, which tile does not know")
    shape = tuple(t.shape[i] for i in range(t.ndim))
    strides = tuple(t.strides[i] for i in range(t.ndim)) if t.strides else None
    device = TensorDevice(dlpack=t.device_type, index=t.device_id)
    return TensorView((t.data or 0) + t.byte_offset, shape, strides, kind, device, True, (value, capsule))


Allocate = Callable[[Sequence[int], str], Any]


def allocator(like: Any) -> tuple[Allocate, Callable[[Any], Any]]:
    """(allocate, finish): make an output of the kind of ``like``; ``finish`` gives what the caller receives.

    ``like`` None or of a library that is only known by DLPack: numpy allocates, and ``finish`` hands the array back through
    that library's ``from_dlpack`` if it has one.
    """
    if _is_torch(like):
        torch = sys.modules["torch"]
        return lambda shape, type: torch.empty(
            tuple(shape), dtype=dtype(type).as_torch(), device=like.device
        ), _same
    import numpy as np

    def allocate(shape: Sequence[int], type: str) -> Any:
        return np.empty(tuple(shape), dtype=dtype(type).as_numpy())

    if like is None or isinstance(like, np.ndarray):
        return allocate, _same
    namespace = getattr(like, "__array_namespace__", None)
    module = namespace() if namespace else sys.modules.get(type(like).__module__.partition(".")[0])
    convert = getattr(module, "from_dlpack", None)
    return allocate, convert or _same


def _same(value: Any) -> Any:
    return value
