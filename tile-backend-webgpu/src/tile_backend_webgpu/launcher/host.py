"""Tensors in the host's memory as bytes: takes a launch specification and the numbers of a call, gives addresses and sizes."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tile_core.backend import LaunchParam, LaunchSpec
from tile_core.dtypes import dtype
from tile_core.errors import ArgumentError
from tile_core.runtime.binding import evaluate

Numbers = Mapping[str, "int | float"]
GRAIN = 16  # bytes: bindings hold whole vectors, copies whole words


@dataclass(frozen=True)
class HostTensor:
    """Bytes of an argument. ``given``: the caller's values matter, as they do unless the runtime has just allocated it."""

    name: str
    address: int
    size: int
    written: bool
    given: bool

    @property
    def room(self) -> int:
        """Bytes of its buffer on the device."""
        return max(GRAIN, -(-self.size // GRAIN) * GRAIN)

    @property
    def memory(self) -> memoryview:
        return memoryview((ctypes.c_ubyte * self.size).from_address(self.address)).cast("B")

    def overlaps(self, other: HostTensor) -> bool:
        return self.address < other.address + other.size and other.address < self.address + self.size


def tensors(launch: LaunchSpec, arguments: Sequence[int | float], numbers: Numbers) -> Iterator[HostTensor]:
    """The tensors of a call, in order. Raises ``ArgumentError``: two of them share memory that is written."""
    found: list[HostTensor] = []
    for n, (p, value) in enumerate(zip(launch.params, arguments, strict=True)):
        if p.kind == "tensor":
            one = HostTensor(p.name, int(value), _bytes(p, numbers), p.written, n not in launch.outputs)
            for other in found:
                _apart(other, one, len(launch.entries) > 1)
            found.append(one)
            yield one


def _apart(a: HostTensor, b: HostTensor, several: bool) -> None:
    """Each argument has a buffer of its own on the device: what one launch writes to the one is not seen through the other."""
    mixed = (a.written and b.written) or (several and (a.written or b.written))
    if mixed and a.size and b.size and a.overlaps(b):
        raise ArgumentError(
            f"{a.name} and {b.name} share memory, and the kernel writes it",
            help="pass a copy of one: tensors in the host's memory are copied to the device one by one",
        )


def _bytes(p: LaunchParam, numbers: Numbers) -> int:
    shape = [evaluate(d, numbers) for d in p.shape]
    element = dtype(p.dtype).bytes
    if not p.strides or 0 in shape:
        return prod(shape) * element
    steps = [evaluate(s, numbers) for s in p.strides]
    if any(s < 0 for s in steps):
        raise ArgumentError(f"{p.name} has a negative stride", help="pass a copy: numpy.ascontiguousarray")
    return (1 + sum((n - 1) * s for n, s in zip(shape, steps, strict=True))) * element


def workspace_bytes(shape: Sequence[int | str], element: int, numbers: Numbers) -> int:
    """Bytes of a workspace's buffer."""
    size = prod(evaluate(d, numbers) for d in shape) * element
    return max(GRAIN, -(-size // GRAIN) * GRAIN)
