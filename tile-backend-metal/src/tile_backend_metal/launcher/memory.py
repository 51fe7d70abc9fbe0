"""Arrays of the host as buffers of Metal: copied there for a call, and what kernels wrote copied back element by element.

Arrays that share memory share a buffer, so that a kernel which updates one of them in place is seen through the other.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tile_core.dtypes import dtype
from tile_core.errors import ArgumentError
from tile_core.expr import row_major
from tile_core.runtime.arguments import TensorView, is_tensor, view

ALIGNED = 16  # bytes of the widest access of a kernel: buffers keep addresses modulo this


@dataclass(frozen=True, slots=True)
class Place:
    """Where an array begins: a buffer, and bytes from its start."""

    buffer: Any
    offset: int


@dataclass(frozen=True, slots=True)
class _Array:
    """An array of the host. ``steps``: bytes from one element to the next of each dimension."""

    view: TensorView
    item: int
    steps: tuple[int, ...]

    @staticmethod
    def of(value: Any) -> _Array:
        if not is_tensor(value):
            raise ArgumentError(f"{type(value).__name__} is no tensor")
        found = view(value)
        if not found.on_host:
            raise ArgumentError(
                f"a tensor on {found.device} cannot be passed together with arrays of the host",
                help="pass torch tensors on 'mps' only, or numpy arrays only",
            )
        item = dtype(found.dtype).bytes
        return _Array(found, item, tuple(s * item for s in found.strides or row_major(found.shape)))

    @property
    def span(self) -> tuple[int, int]:
        """Addresses from the first byte to the one after the last; equal for no element."""
        if 0 in self.view.shape:
            return self.view.pointer, self.view.pointer
        reach = [(n - 1) * step for n, step in zip(self.view.shape, self.steps, strict=True)]
        first = self.view.pointer + sum(r for r in reach if r < 0)
        return first, self.view.pointer + sum(r for r in reach if r > 0) + self.item

    def elements(self, memory: Any, offset: int) -> Any:
        """As a numpy array of plain bytes over ``memory``, in which it begins at ``offset``."""
        import numpy as np

        return np.ndarray(self.view.shape, f"V{self.item}", memory, offset, self.steps)


@dataclass(frozen=True, slots=True)
class _Region:
    """Addresses ``first`` to ``end`` of the host, and the buffer that has their bytes after ``first % ALIGNED`` others."""

    first: int
    end: int
    buffer: Any

    def offset(self, address: int) -> int:
        return address - self.first + self.first % ALIGNED

    def bytes(self) -> bytes:
        return bytes(self.buffer.contents().as_buffer(self.offset(self.end)))


class Held:
    """The arrays of one call. ``make`` gives a buffer that begins with these bytes."""

    def __init__(self, values: Sequence[Any], make: Callable[[bytes], Any]) -> None:
        self._arrays = {id(value): _Array.of(value) for value in values}
        self._regions: list[_Region] = []
        for first, end in joined([a.span for a in self._arrays.values()]):
            data = bytes(first % ALIGNED) + ctypes.string_at(first, end - first)
            self._regions.append(_Region(first, end, make(data or b"\0")))

    def place(self, value: Any) -> Place:
        """Where an array is. ``value`` is one of those given at the start."""
        array = self._arrays[id(value)]
        region = self._region(array)
        return Place(region.buffer, region.offset(array.view.pointer))

    def give_back(self) -> None:
        """Copy the elements of arrays that may be written back to the host; what lies between elements stays."""
        made = {region.first: region.bytes() for region in self._regions}
        for array in self._arrays.values():
            first, end = array.span
            if first == end or not array.view.writable:
                continue
            region = self._region(array)
            host = (ctypes.c_char * (end - first)).from_address(first)
            to = array.elements(host, array.view.pointer - first)
            to[...] = array.elements(made[region.first], region.offset(array.view.pointer))

    def _region(self, array: _Array) -> _Region:
        first, end = array.span
        return next(r for r in self._regions if r.first <= first and end <= r.end)


def joined(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans of addresses in order, those that overlap made one."""
    out: list[tuple[int, int]] = []
    for first, end in sorted(set(spans)):
        if out and first < out[-1][1]:
            out[-1] = out[-1][0], max(end, out[-1][1])
        else:
            out.append((first, end))
    return out
