"""Memory of the interpreter: typed arrays that know which of their bytes have been written."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dtypes import DType
from ..expr import row_major

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass
class Memory:
    """Storage of one buffer. ``data`` has the buffer's shape; ``written`` has a flag for each byte, or None: all are.

    ``lanes``: the array has a leading dimension of one private copy for each thread. ``strides``: in elements, of a view
    that is not in row-major order.
    """

    data: NDArray[np.generic]
    written: Bools | None
    lanes: bool = False
    strides: tuple[int, ...] | None = None

    @staticmethod
    def fresh(shape: tuple[int, ...], dtype: DType, lanes: int = 0) -> Memory:
        """Unwritten storage. Its bytes are all ones, which is NaN in every float format that has one."""
        full = (lanes, *shape) if lanes else shape
        type = dtype.as_numpy()
        size = prod(full) * type.itemsize
        raw = np.full(size, 0xFF, dtype=np.uint8)
        return Memory(raw.view(type).reshape(full), np.zeros(size, dtype=np.bool_), bool(lanes))

    def view(self, shape: tuple[int, ...], dtype: DType, strides: tuple[int, ...] | None = None) -> Memory:
        """The same bytes with another shape and type; ``strides`` None: in row-major order."""
        type = dtype.as_numpy()
        lead = self.data.shape[:1] if self.lanes else ()
        raw = self.data.reshape(-1).view(np.uint8)
        if raw.size != prod((*lead, *shape)) * type.itemsize:
            raise ValueError(f"{raw.size} bytes are not {shape} of {dtype}")
        flat = raw.view(type)
        if strides is None:
            return Memory(flat.reshape((*lead, *shape)), self.written, self.lanes)
        steps = (*(prod(shape) for _ in lead), *strides)
        data = np.lib.stride_tricks.as_strided(flat, (*lead, *shape), [s * type.itemsize for s in steps])
        return Memory(data, self.written, self.lanes, steps)

    def flat_index(self, index: tuple[Ints, ...]) -> Ints:
        out: Ints = np.zeros((), dtype=np.int64)
        if self.strides is not None:
            for i, stride in zip(index, self.strides, strict=True):
                out = out + i * stride
            return out
        for i, extent in zip(index, self.data.shape, strict=True):
            out = out * extent + i
        return out

    def is_written(self, index: tuple[Ints, ...]) -> Bools:
        """Whether each element of ``index`` (arrays of one shape) has been written."""
        at = self.flat_index(index)
        if self.written is None:
            return np.ones(at.shape, dtype=np.bool_)
        return np.asarray(self.written.reshape(-1, self.data.dtype.itemsize)[at].all(axis=-1))

    def mark(self, index: tuple[Ints, ...]) -> None:
        if self.written is not None:
            self.written.reshape(-1, self.data.dtype.itemsize)[self.flat_index(index)] = True

    def forget(self) -> None:
        """Contents are unknown from here on."""
        if self.written is not None:
            self.written[...] = False


def array_at(
    pointer: int, shape: tuple[int, ...], strides: tuple[int, ...] | None, type: DType
) -> NDArray[Any]:
    """A numpy array over memory at an address; ``strides`` count elements, None: contiguous."""
    kind = type.as_numpy()
    if 0 in shape or not pointer:
        return np.zeros(shape, dtype=kind)
    steps = strides if strides is not None else row_major(shape)
    size = 1 + sum((n - 1) * s for n, s in zip(shape, steps, strict=True))
    raw = (ctypes.c_uint8 * (size * kind.itemsize)).from_address(pointer)
    return np.ndarray(shape, kind, buffer=raw, strides=tuple(s * kind.itemsize for s in steps))
