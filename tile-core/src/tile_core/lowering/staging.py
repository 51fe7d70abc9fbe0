"""A tile's values set aside in scratch memory, contiguous and in a type of choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from .. import _tvm as tvm
from ..errors import Unsupported
from ..span import Span
from .nodes import Node, add, i64, known, loop, multiply
from .scope import Scope

Body = Callable[[list[Node]], list[Node]]


@dataclass(frozen=True)
class Staged:
    """``array`` holds a tile of ``shape`` in row-major order; the last dimension may be padded to ``pitch``."""

    array: Node
    shape: tuple[int, ...]
    pitch: int

    def at(self, local: Sequence[Node]) -> Node:
        out = i64(0)
        for n, i in zip((*self.shape[:-1], self.pitch), local, strict=True):
            out = add(multiply(out, i64(n)), i)
        return out

    def load(self, local: Sequence[Node]) -> Node:
        return tvm.BufferLoad(self.array, [self.at(local)])

    def store(self, local: Sequence[Node], value: Node) -> Node:
        return tvm.BufferStore(self.array, value, [self.at(local)])

    def address(self, local: Sequence[Node]) -> Node:
        return tvm.tirx.address_of(self.load(local))


def stage(
    scope: Scope, name: str, extents: Sequence[Node], kind: str, span: Span | None, pitch: int = 0
) -> Staged:
    """Room for a tile. Raises ``Unsupported`` if its size is only known at launch."""
    shape = fixed(extents, span)
    pitch = pitch or (shape[-1] if shape else 1)
    size = max(1, pitch * prod(shape[:-1]))
    return Staged(scope.memory.temporary(name, kind, size), shape, pitch)


def fixed(extents: Sequence[Node], span: Span | None) -> tuple[int, ...]:
    """The extents as numbers."""
    sizes = tuple(known(e) for e in extents)
    if None in sizes:
        raise Unsupported(
            "a tile whose size is only known at launch cannot be set aside",
            span,
            why="scratch memory is laid out when the kernel is compiled",
            help="give the tile a fixed shape",
        )
    return tuple(n for n in sizes if n is not None)


def over(scope: Scope, extents: Sequence[Node], body: Body, name: str = "i") -> list[Node]:
    """Nested loops over [0, extent), outermost first; the prover knows the ranges."""
    places = [
        i64(0) if known(e) == 1 else scope.ranged(f"{name}{d}", i64(0), e) for d, e in enumerate(extents)
    ]
    out = body(list(places))
    for var, extent in zip(reversed(places), reversed(extents), strict=True):
        if known(extent) != 1:
            out = loop(var, i64(0), extent, out)
    return out
