"""Boxes of buffers: which part of a region is inside its buffer, and loops over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import _tvm as tvm
from ..dtypes import DType
from ..expr import Buffer
from ..program import Region
from . import numbers
from .nodes import Node, add, every, greatest, i64, least, subtract
from .scope import Scope


@dataclass(frozen=True)
class Box:
    """A region with its start and extents as indices. ``counted`` are the dimensions that count in its shape."""

    scope: Scope
    buffer: Buffer
    start: tuple[Node, ...]
    extent: tuple[Node, ...]
    counted: tuple[int, ...]

    @staticmethod
    def of(scope: Scope, r: Region) -> Box:
        return Box(
            scope,
            r.buffer,
            tuple(scope.wide(s) for s in r.start),
            tuple(i64(1) if p else scope.extent(e) for e, p in zip(r.extent, r.point, strict=True)),
            tuple(d for d, p in enumerate(r.point) if not p),
        )

    @property
    def shape(self) -> tuple[Node, ...]:
        return tuple(self.extent[d] for d in self.counted)

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype

    def trimmed(self, rank: int) -> Box:
        """The box with only its last ``rank`` counted dimensions; those before have extent 1."""
        return Box(self.scope, self.buffer, self.start, self.extent, self.counted[len(self.counted) - rank :])

    def place(self, local: Sequence[Node]) -> list[Node]:
        """The indices in the buffer of an element of the box."""
        at = dict(zip(self.counted, local, strict=True))
        return [add(s, at[d]) if d in at else s for d, s in enumerate(self.start)]

    def bounds(self, number: int) -> tuple[Node, Node] | None:
        """The part [low, high) of counted dimension ``number`` that is inside the buffer; None: all of it."""
        d = self.counted[number]
        start, extent, size = self.start[d], self.extent[d], self.scope.extent(self.buffer.shape[d])
        below = self.scope.proves(tvm.GE(start, i64(0)))
        above = self.scope.proves(tvm.LE(add(start, extent), size))
        if below and above:
            return None
        low = i64(0) if below else least(greatest(subtract(i64(0), start), i64(0)), extent)
        high = extent if above else greatest(least(extent, subtract(size, start)), low)
        return low, high

    def points_inside(self) -> Node | None:
        """The condition that the dimensions that do not count are inside; None: they are."""
        conditions = []
        for d in range(self.buffer.ndim):
            if d in self.counted:
                continue
            at, size = self.start[d], self.scope.extent(self.buffer.shape[d])
            conditions += [c for c in (tvm.GE(at, i64(0)), tvm.LT(at, size)) if not self.scope.proves(c)]
        return every(conditions)

    @property
    def inside(self) -> bool:
        """Whether every element is certainly inside the buffer."""
        return self.points_inside() is None and all(self.bounds(n) is None for n in range(len(self.counted)))

    def read(self, local: Sequence[Node]) -> Node:
        """The value at a place of the box; zero outside the buffer. Loop variables must have been given ranges."""
        return self.scope.read(self.buffer, self.place(local))

    def write(self, local: Sequence[Node], value: Node) -> list[Node]:
        return self.scope.write(self.buffer, self.place(local), value)

    def bits(self, local: Sequence[Node]) -> Node:
        """The stored bits at a place that is inside."""
        return self.scope.stored(self.buffer, self.place(local))

    def read_as(self, local: Sequence[Node], to: DType) -> Node:
        return numbers.cast(self.read(local), self.dtype, to)

    def strides(self) -> list[Node]:
        """Strides of the dimensions that count."""
        every_stride = self.scope.strides(self.buffer)
        return [every_stride[d] for d in self.counted]
