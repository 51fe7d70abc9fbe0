"""Tiles in panels of columns: where two teams each take half of a tile's columns, each half is a tile of its own.

So it is free, and can be filled anew, as soon as its team has read it. Columns that no team takes are a third tile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from ..expr import Buffer, Space, binary, const
from ..program import Alloc, Copy, For, Gemm, Launch, Region, Stmt
from ..program.visit import read_storages as read
from ..program.visit import written_storages as written
from .teams import FRONT, OWN

REST = "rest"


class Inseparable(Exception):
    """A statement that cannot be one team's, or half of it each team's."""


@dataclass(frozen=True)
class Panels:
    """``tiles``: of each tile, by team (``REST``: what no sums take), the panel and the first of its columns.

    What is free first comes first.
    """

    tiles: Mapping[Buffer, Mapping[str, tuple[Buffer, int]]]

    @staticmethod
    def of(launch: Launch, loop: For, sums: Collection[Buffer]) -> Panels:
        """The tiles of a loop that products into halved ``sums`` take columns of."""
        out: dict[Buffer, dict[str, tuple[Buffer, int]]] = {}
        for s in loop.body:
            if not isinstance(s, Gemm) or s.c.buffer not in sums or not _splits(launch, loop, s):
                continue
            b, width = s.b.buffer, half(s.c.buffer)
            columns = {REST: (2 * width, columns_of(b) - 2 * width), OWN: (0, width), FRONT: (width, width)}
            out[b] = {
                name: (replace(b, name=f"{b.name}_{name}", shape=(b.shape[0], count)), first)
                for name, (first, count) in columns.items()
                if count
            }
        return Panels(out)

    def made(self) -> Iterator[Buffer]:
        yield from (tile for parts in self.tiles.values() for tile, _ in parts.values())

    def split(self, s: Stmt) -> Iterator[Stmt]:
        """A copy to a tile in panels, or a product along the rows of one, panel by panel; any other statement as it is."""
        match s:
            case Copy() if s.dst.buffer in self.tiles:
                for tile, first in self.tiles[s.dst.buffer].values():
                    yield replace(s, src=part(s.src, -1, first, columns_of(tile)), dst=whole(tile))
            case Gemm() if s.b.buffer in self.tiles:
                for n, (tile, first) in enumerate(self.tiles[s.b.buffer].values()):
                    a = part(s.a, -1, first, columns_of(tile))
                    yield replace(s, a=a, b=whole(tile), clear=s.clear and n == 0)
            case _:
                yield s


def _splits(launch: Launch, loop: For, product: Gemm) -> bool:
    """Whether one copy alone fills a product's tile, and others read all of it, this one columns from the first on."""
    b = product.b.buffer
    users = [s for s in loop.body if b in read(s) | written(s) and s is not product]
    copies = [s for s in users if isinstance(s, Copy) and fills(s) and _covers(s.dst)]
    outside = [s for s in launch.body if s is not loop and not isinstance(s, Alloc)]
    return (
        b.space is Space.SHARED
        and b.source is None
        and b.ndim == 2
        and len(copies) == 1
        and not product.transpose_b
        and _from_zero(product.b)
        and product.b.extent == (b.shape[0], 2 * half(product.c.buffer))
        and all(_sums_along(s, b) for s in users if s is not copies[0])
        and not any(b in read(s) | written(s) for s in outside)
    )


def _sums_along(s: Stmt, b: Buffer) -> bool:
    """Whether a product of two tiles in shared memory sums along the rows of all of ``b``."""
    if not isinstance(s, Gemm) or s.b.buffer is not b or s.a.buffer.space is not Space.SHARED:
        return False
    return s.transpose_b and not s.transpose_a and _covers(s.b)


def fills(s: Stmt) -> bool:
    """Whether a statement copies from global to shared memory."""
    return isinstance(s, Copy) and s.src.buffer.space is Space.GLOBAL and s.dst.buffer.space is Space.SHARED


def columns_of(b: Buffer) -> int:
    columns = b.shape[-1]
    if not isinstance(columns, int):
        raise Inseparable
    return columns


def half(b: Buffer) -> int:
    """Half of the columns of sums."""
    if b.ndim != 2 or columns_of(b) % 2:
        raise Inseparable
    return columns_of(b) // 2


def whole(b: Buffer) -> Region:
    return Region(b, tuple(const(0) for _ in b.shape), b.shape, tuple(False for _ in b.shape), whole=True)


def part(r: Region, dimension: int, first: int, count: int) -> Region:
    """A region with fewer elements of one of the dimensions that count."""
    n = [n for n, p in enumerate(r.point) if not p][dimension]
    start, extent = list(r.start), list(r.extent)
    start[n], extent[n] = binary("+", start[n], first), count
    return replace(r, start=tuple(start), extent=tuple(extent), whole=False)


def _covers(r: Region) -> bool:
    return r.whole or (r.extent == r.buffer.shape and _from_zero(r))


def _from_zero(r: Region) -> bool:
    return all(getattr(x, "value", None) == 0 for x in r.start)
