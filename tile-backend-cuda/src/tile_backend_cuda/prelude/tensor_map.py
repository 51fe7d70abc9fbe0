"""Tensor maps of TMA: an array, a box and a swizzle in; checked against the rules of the driver; bytes for the emulator out."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tile_core.errors import TileError
from tile_core.testing.machine import Packed

SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
# element type: number in the emulator (`Type` of cuda_host.h); integers move as they are
TYPES = {
    "float16": 0,
    "bfloat16": 1,
    "float32": 9,
    "float64": 11,
    "float8_e4m3fn": 3,
    "float8_e5m2": 4,
}
OTHER = 10


@dataclass(frozen=True)
class TensorMap:
    """How TMA sees an array: ``box`` and ``steps`` in elements, the array's last dimension last.

    A copy moves every ``steps``-th element of the box, so ``ceil(box / steps)`` along each dimension.

    Rules (CUDA driver, cuTensorMapEncodeTiled): at most 5 dimensions; address a multiple of 16 bytes, row strides too;
    box extents 1 to 256 and its inner row a multiple of 16 bytes, at most the swizzle's span; steps 1 to 8,
    of the last dimension 1. A copy begins at a multiple of 16 bytes in its row, and a store at no negative coordinate (measured on
    an H200: an illegal instruction otherwise).
    """

    array: np.ndarray[Any, Any]
    box: tuple[int, ...]
    swizzle: int = 0
    steps: tuple[int, ...] = ()
    nan: bool = False
    name: str = field(default="tensor map", compare=False)

    def __post_init__(self) -> None:
        if not self.steps:
            object.__setattr__(self, "steps", (1,) * len(self.box))
        problem = next(iter(self._problems()), None)
        if problem:
            raise TileError(f"{self.name}: {problem}", why="CUDA driver API, cuTensorMapEncodeTiled")

    @property
    def strides(self) -> tuple[int, ...]:
        """In bytes. A dense array's follow from its shape, as for a launch: numpy's are anything along dimensions of extent 1."""
        a = self.array
        if not a.flags.c_contiguous:
            return a.strides
        return tuple(a.itemsize * math.prod(a.shape[n + 1 :]) for n in range(a.ndim))

    def _problems(self) -> list[str]:
        a, size, strides = self.array, self.array.itemsize, self.strides
        row = self.box[-1] * size
        rules = (
            (
                1 <= a.ndim <= 5 and len(self.box) == a.ndim == len(self.steps),
                "1 to 5 dimensions, as the box",
            ),
            (strides[-1] == size or a.shape[-1] == 1, "the last dimension must be contiguous"),
            (
                all(s % 16 == 0 for s in strides[:-1]),
                f"strides {strides[:-1]} are no multiples of 16 bytes",
            ),
            (all(0 < s < 1 << 40 for s in strides[:-1]), "strides must be under 2^40 bytes"),
            (all(1 <= b <= 256 for b in self.box), f"box {self.box} has an extent outside 1..256"),
            (row % 16 == 0, f"a box row of {row} bytes is no multiple of 16"),
            (self.swizzle in SWIZZLES, f"no swizzle of {self.swizzle} bytes"),
            (
                not self.swizzle or row <= self.swizzle,
                f"a box row of {row} bytes is longer than the swizzle's {self.swizzle}",
            ),
            (all(1 <= s <= 8 for s in self.steps), f"steps {self.steps} outside 1..8"),
            (self.steps[-1] == 1, "the last dimension has no step"),
        )
        return [text for holds, text in rules if not holds]

    @property
    def moved(self) -> tuple[int, ...]:
        """Elements that a copy moves along each dimension."""
        return tuple(-(-b // s) for b, s in zip(self.box, self.steps))

    def packed(self) -> Packed:
        """The 128 bytes that the emulator reads (``Map`` of cuda_host.h)."""
        a = self.array

        def five(values: tuple[int, ...], fill: int) -> list[int]:
            return [*values[::-1], *[fill] * (5 - len(values))]

        strides = [*self.strides[:-1][::-1], *[0] * (4 - (a.ndim - 1))]
        kind = TYPES.get(a.dtype.name, OTHER)
        data = struct.pack(
            "<Q5Q4Q5I5BBBBBB",
            0,
            *five(a.shape, 1),
            *strides,
            *five(self.moved, 1),
            *five(self.steps, 1),
            a.ndim,
            a.itemsize,
            SWIZZLES[self.swizzle],
            kind,
            int(self.nan),
        )
        return Packed(data.ljust(128, b"\0"), ((0, a),))
