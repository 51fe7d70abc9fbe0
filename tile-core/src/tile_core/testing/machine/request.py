"""The file that carries a launch to the host program: 64-bit words, then the bytes of the buffers, which come back in place."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..arguments import is_array
from .compiler import MachineError

ALIGN = 64


Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Packed:
    """An opaque argument: its bytes, and at which of its offsets stands the address of which array."""

    data: bytes
    pointers: tuple[tuple[int, Array], ...] = ()


@dataclass
class Layout:
    """Words and bytes of a request while it is made."""

    buffers: list[Array] = field(default_factory=list[Array])
    words: list[int] = field(default_factory=list[int])
    packed: list[tuple[int, bytes]] = field(
        default_factory=list["tuple[int, bytes]"]
    )  # index of the word that takes the offset

    def buffer(self, array: Array) -> tuple[int, int]:
        """Number of the buffer that holds the array, and the array's offset in it."""
        whole = _owner(array)
        offset = array.ctypes.data - whole.ctypes.data
        for i, known in enumerate(self.buffers):
            if known is whole:
                return i, offset
        if not whole.flags.c_contiguous:
            raise MachineError(
                "an array passed to the emulator is not contiguous", help="pass np.ascontiguousarray(x)"
            )
        self.buffers.append(whole)
        return len(self.buffers) - 1, offset

    def argument(self, value: Any) -> None:
        match value:
            case Packed():
                self.words += [3]
                self.packed.append((len(self.words), value.data))
                self.words += [0, len(value.pointers)]
                for at, array in value.pointers:
                    self.words += [at, *self.buffer(array)]
            case bool() | int():
                self.words += [0, int(value) & (2**64 - 1)]
            case float():
                self.words += [1, *struct.unpack("<Q", struct.pack("<d", value))]
            case _ if isinstance(value, np.generic):
                self.argument(value.item())
            case _ if is_array(value):
                self.words += [2, *self.buffer(value)]
            case _:
                raise MachineError(f"the emulator cannot pass a {type(value).__name__} to a kernel")


def _owner(array: Array) -> Array:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def encode(head: Sequence[int], arguments: Sequence[Any]) -> tuple[bytearray, list[tuple[Array, int]]]:
    """The file's bytes, and where in it each buffer's bytes stand."""
    layout = Layout()
    for value in arguments:
        layout.argument(value)
    words = [*head, len(layout.buffers), len(arguments)]
    places_at = len(words)
    words += [0] * (2 * len(layout.buffers))
    first = len(words)
    words += layout.words
    data = bytearray(-(-len(words) * 8 // ALIGN) * ALIGN)

    def append(piece: bytes) -> int:
        at = len(data)
        data.extend(piece)
        data.extend(bytes(-len(piece) % ALIGN))
        return at

    for at, piece in layout.packed:
        words[first + at] = append(piece)
    places: list[tuple[Array, int]] = []
    for i, array in enumerate(layout.buffers):
        offset = append(array.tobytes())
        words[places_at + 2 * i : places_at + 2 * i + 2] = [offset, array.nbytes]
        places.append((array, offset))
    data[: len(words) * 8] = np.array(words, np.uint64).tobytes()
    return data, places
