"""Which tiles of the grid each block works on, decided when compiling: how much work each is in, a list for each block out."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from ...dtypes import INT32
from ...expr import Buffer, Expr, Load, Space, binary
from ...program import Alloc


@dataclass(frozen=True)
class Deal:
    """``tiles``: for each block the numbers of its tiles, in its order. A number is row-major, the first dimension fastest."""

    tiles: tuple[tuple[int, ...], ...]

    @property
    def blocks(self) -> int:
        return len(self.tiles)

    @cached_property
    def _first(self) -> Buffer:
        return Buffer("first", (self.blocks + 1,), INT32, Space.GLOBAL, number=903)

    @cached_property
    def _dealt(self) -> Buffer:
        return Buffer("dealt", (sum(map(len, self.tiles)),), INT32, Space.GLOBAL, number=904)

    def tables(self) -> tuple[Alloc, ...]:
        """The lists one after the other, and where each begins."""
        first = tuple(accumulate(map(len, self.tiles), initial=0))
        return Alloc(self._first, values=first), Alloc(
            self._dealt, values=tuple(n for t in self.tiles for n in t)
        )

    def count(self, block: Expr) -> Expr:
        return binary("-", Load(self._first, (binary("+", block, 1),)), Load(self._first, (block,)))

    def tile(self, block: Expr, turn: Expr) -> Expr:
        return Load(self._dealt, (binary("+", Load(self._first, (block,)), turn),))


def dealt(order: Iterable[int], work: Mapping[int, float], blocks: int) -> Deal:
    """List scheduling (Graham 1966): in the given order each tile goes to the block that is done first."""
    done = [(0.0, block) for block in range(blocks)]
    tiles: list[list[int]] = [[] for _ in done]
    for n in order:
        finished, block = done[0]
        tiles[block].append(n)
        heapq.heapreplace(done, (finished + work[n], block))
    return Deal(tuple(map(tuple, tiles)))
