"""Variables in workgroup memory for the shared tiles of a launch: takes the places that the lowering found, gives declarations.

Tiles that the lowering put at the same bytes, because they are never needed together, share one variable; others get a variable of
their own type. So most tiles are typed arrays, which compilers understand, and only tiles that share bytes and
differ in type are read through bit casts. Tiles of f16 share with tiles of words only where room is short, and only those that
are written in whole words: two invocations cannot write the halves of one word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tile_core.errors import InternalError, Unsupported
from tile_core.expr import Buffer, Space
from tile_core.hardware import TargetInfo
from tile_core.lowering.simt.arena import size_of
from tile_core.program import Alloc, Launch

from ..targets import GRANTED
from .scalars import CELL_BYTES, Scalars
from .storage import Form, Stored, in_memory, joined
from .uses import Uses


@dataclass(frozen=True)
class Tile:
    """A tile and the bytes that the lowering gave it."""

    buffer: Buffer
    start: int

    @property
    def end(self) -> int:
        return self.start + size_of(self.buffer)


@dataclass(frozen=True)
class Variable:
    """A variable of ``bytes`` bytes in workgroup memory, and how each of its tiles is found in it."""

    declaration: str
    bytes: int
    tiles: tuple[tuple[Buffer, Stored], ...]


def variables(
    info: TargetInfo, launch: Launch, uses: Uses, scalars: Scalars, named: Callable[[Buffer], str]
) -> list[Variable]:
    """The variables of a launch; ``named`` gives a tile's name, which no other has.

    Raises ``Unsupported``: they are larger than what the target grants.
    """
    space = info.space("shared")
    groups = _together(_tiles(launch))
    out = _declared(groups, uses, scalars, named, tight=False)
    if space is not None and sum(v.bytes for v in out) > space.capacity:
        out = _declared(groups, uses, scalars, named, tight=True)
    size = sum(v.bytes for v in out)
    if space is not None and size > space.capacity:
        raise Unsupported(
            f"a block needs {size} bytes of workgroup memory, {info.target} grants {space.capacity}",
            launch.span,
            why="the limit maxComputeWorkgroupStorageSize of WebGPU",
            help=_smaller(out, size),
        )
    return out


def _declared(
    groups: Sequence[Sequence[Tile]],
    uses: Uses,
    scalars: Scalars,
    named: Callable[[Buffer], str],
    *,
    tight: bool,
) -> list[Variable]:
    parts = [part for group in groups for part in _apart(group, uses, scalars, tight)]
    return [_variable(part, uses, scalars, named(part[0].buffer)) for part in parts]


def _smaller(out: Sequence[Variable], size: int) -> str:
    """What would work: which tiles are large, and the targets that grant as much."""
    tiles = {b.name: size_of(b) for v in out for b, _ in v.tiles}
    largest = sorted(tiles.items(), key=lambda row: (-row[1], row[0]))[:3]
    text = ", ".join(f"{name} {bytes}" for name, bytes in largest)
    wide = ", ".join(f"webgpu:{g.arch}" for g in GRANTED if g.workgroup >= size)
    other = f"; or a target that grants it: {wide}" if wide else ""
    return f"use smaller tiles ({text} bytes), or fewer of them or of the stages of a loop{other}"


def _tiles(launch: Launch) -> Iterator[Tile]:
    for s in launch.body:
        if isinstance(s, Alloc) and s.buffer.space is Space.SHARED:
            if s.offset is None:
                raise InternalError(f"{s.buffer.name} has no place in shared memory")
            yield Tile(s.buffer, s.offset)


def _together(tiles: Iterator[Tile]) -> list[list[Tile]]:
    """Tiles that have bytes of each other, directly or through others."""
    out: list[list[Tile]] = []
    end = -1
    for t in sorted(tiles, key=lambda t: (t.start, -t.end, t.buffer.name, t.buffer.number)):
        if not out or t.start >= end:
            out.append([])
        out[-1].append(t)
        end = max(end, t.end)
    return out


def _apart(group: Sequence[Tile], uses: Uses, scalars: Scalars, tight: bool) -> Iterator[Sequence[Tile]]:
    # what matrices are loaded from must be an array of their elements
    whole = [t for t in group if uses[t.buffer].whole]
    group = [t for t in group if t not in whole]
    for cell in sorted({in_memory(t.buffer, uses[t.buffer], scalars)[1] for t in whole}):
        yield [t for t in whole if in_memory(t.buffer, uses[t.buffer], scalars)[1] == cell]
    halves = [t for t in group if in_memory(t.buffer, uses[t.buffer], scalars)[1] == "f16"]
    if tight and len(halves) < len(group):
        halves = [t for t in halves if uses[t.buffer].stored]
    words = [t for t in group if t not in halves]
    yield from (part for part in (halves, words) if part)


def _variable(part: Sequence[Tile], uses: Uses, scalars: Scalars, name: str) -> Variable:
    kinds = [(*in_memory(t.buffer, uses[t.buffer], scalars), tuple(uses[t.buffer].dtypes)) for t in part]
    form, cell = joined(kinds)
    start, end = min(t.start for t in part), max(t.end for t in part)
    bytes = CELL_BYTES[cell]
    count = -(-(end - start) // bytes)
    stored = Stored(name, form, cell)
    size = 16 * -(-(end - start) // 16) if form is Form.VECTOR else count * bytes
    tiles = tuple((t.buffer, Stored(name, form, cell, (t.start - start) // bytes)) for t in part)
    return Variable(f"var<workgroup> {name}: {stored.array(count)};", size, tiles)
