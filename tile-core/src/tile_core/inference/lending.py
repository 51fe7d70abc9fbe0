"""Tiles lent to threads: what an iteration has read already keeps, until it is filled anew, what threads hand to products.

A tile that threads write several times in an iteration has one slot where memory is short: each write waits for the products of the
one before. From the second on, a tile of the same kind that a copy has filled and its team has read to the end takes it. That
tile is then free last of all, so the products that read it come last among those that add to the same sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ..expr import Buffer, Space
from ..program import Copy, For, Gemm, Launch, Region, Stmt
from .panels import fills, whole
from .teams import Teams, read, written


def lent(launch: Launch) -> Launch:
    """A launch for two teams with tiles lent in its loops, where there are such."""
    teams = Teams.of(launch)
    if teams is None:
        return launch
    body = tuple(_Lending(launch, teams, s).done() if isinstance(s, For) else s for s in launch.body)
    return replace(launch, body=body)


@dataclass
class _Lending:
    """One loop. ``taken``: tiles that are lent already."""

    launch: Launch
    teams: Teams
    loop: For

    def __post_init__(self) -> None:
        self.taken: list[Buffer] = []

    def done(self) -> For:
        body = list(self.loop.body)
        for tile in dict.fromkeys(s.dst.buffer for s in body if isinstance(s, Copy) and _writes(s)):
            for n, until in self._later_lives(body, tile):
                lender = self._lender(body, body[n])
                if lender is not None:
                    self.taken.append(lender)
                    body[n:until] = [_renamed(s, tile, lender) for s in body[n:until]]
        for tile in self.taken:
            body = _last(body, tile)
        return replace(self.loop, body=tuple(body))

    def _later_lives(self, body: Sequence[Stmt], tile: Buffer) -> Iterator[tuple[int, int]]:
        """From where to where a tile holds what threads have written there, but for the first time."""
        if any(tile in read(s) | written(s) for s in self.launch.body if s is not self.loop):
            return
        uses = [s for s in body if tile in read(s) | written(s)]
        writes = [n for n, s in enumerate(body) if tile in written(s)]
        if len(writes) > 1 and all(_writes(s) or _multiplies(s, tile) for s in uses) and _writes(uses[0]):
            yield from pairwise((*writes[1:], len(body)))

    def _lender(self, body: Sequence[Stmt], write: Stmt) -> Buffer | None:
        """The tile filled last of those that a write can go to."""
        at = next(n for n, s in enumerate(body) if s is write)
        assert isinstance(write, Copy)
        for s in reversed(body[:at]):
            if isinstance(s, Copy) and fills(s) and self._can_lend(body, at, s.dst.buffer, write):
                return s.dst.buffer
        return None

    def _can_lend(self, body: Sequence[Stmt], at: int, tile: Buffer, write: Copy) -> bool:
        """Whether all that is done with a tile is a copy and products of the team that writes, before place ``at``."""
        wanted = write.dst.buffer
        uses = [(n, s) for n, s in enumerate(body) if tile in read(s) | written(s)]
        mine = self.teams.of_statement(write)
        return (
            (tile.shape, tile.dtype, tile.source) == (wanted.shape, wanted.dtype, None)
            and tile not in self.taken
            and not any(tile in read(s) | written(s) for s in self.launch.body if s is not self.loop)
            and all(n < at for n, _ in uses)
            and sum(fills(s) for _, s in uses) == 1
            and all(fills(s) or (_sums(s) and self.teams.of_statement(s) == mine) for _, s in uses)
        )


def _writes(s: Stmt) -> bool:
    """Whether threads write all of a shared tile from a fragment."""
    return (
        isinstance(s, Copy)
        and s.src.buffer.space is Space.FRAGMENT
        and s.dst.buffer.space is Space.SHARED
        and s.dst.buffer.source is None
        and s.dst.buffer.ndim == 2
        and s.dst.whole
    )


def _multiplies(s: Stmt, tile: Buffer) -> bool:
    """Whether a product has all of a tile as its left operand."""
    return isinstance(s, Gemm) and s.a.buffer is tile and s.a.whole and s.b.buffer is not tile


def _sums(s: Stmt) -> bool:
    """Whether a product adds to what is a fragment."""
    return isinstance(s, Gemm) and s.c.buffer.space is Space.FRAGMENT


def _renamed(s: Stmt, old: Buffer, new: Buffer) -> Stmt:
    def other(r: Region) -> Region:
        return whole(new) if r.buffer is old else r

    match s:
        case Copy():
            return replace(s, dst=other(s.dst))
        case Gemm():
            return replace(s, a=other(s.a))
        case _:
            return s


def _last(body: list[Stmt], tile: Buffer) -> list[Stmt]:
    """The products that read a tile behind all others that, next to them, add to the same sums."""
    out = list(body)
    for s in body:
        if not isinstance(s, Gemm) or s.b.buffer is not tile:
            continue
        at = end = next(n for n, t in enumerate(out) if t is s)
        while end + 1 < len(out) and _adds(out[end + 1], s.c.buffer):
            end += 1
        if end == at:
            continue
        rest = out[at + 1 : end + 1]
        if s.clear:
            assert isinstance(rest[0], Gemm)
            rest[0] = replace(rest[0], clear=True)
        out[at : end + 1] = [*rest, replace(s, clear=False)]
    return out


def _adds(s: Stmt, sums: Buffer) -> bool:
    return isinstance(s, Gemm) and s.c.buffer is sums and not s.clear
