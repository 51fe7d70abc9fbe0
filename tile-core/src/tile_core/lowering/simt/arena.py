"""Places of tiles in a block's shared memory: tiles that are never needed at the same time share bytes.

Takes the thread-level statements of a launch before barriers are put in; gives an offset for each tile. A barrier must then stand
between the last use of one tile and the first of another that has its bytes: ``Arena.sharing`` says which those are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from ...expr import Buffer, Space
from ...program import For, Stmt, While
from ...program.visit import places, statements
from .barriers import block_level, header, touched
from .context import Context

Span = tuple[int, int]
NEVER = 1 << 62  # bytes: more than tiles take
BLOCKS = 8  # that many blocks of a core leave each of them enough shared memory not to save any


@dataclass(frozen=True)
class Arena:
    """``offsets`` in bytes. ``sharing``: for each tile those that have some of its bytes."""

    offsets: Mapping[Buffer, int]
    sharing: Mapping[Buffer, frozenset[Buffer]]
    size: int


def placed_tiles(context: Context, body: Sequence[Stmt], blocks: int = BLOCKS, apart: bool = False) -> Arena:
    """Places of all tiles that the lowering of ``body`` made. ``blocks``: how many should find room on a core.

    ``apart``: no bytes are shared, as different threads do parts of ``body`` at the same time.
    """
    shared = context.plan.info.space("shared")
    enough = shared.capacity // blocks if shared is not None else 0
    return arena(body, context.alignments(), frozenset(context.made), NEVER if apart else enough)


def arena(
    body: Sequence[Stmt], tiles: Mapping[Buffer, int], transient: Collection[Buffer], enough: int = 0
) -> Arena:
    """Offsets for ``tiles`` (tile -> alignment in bytes). No bytes are shared if all tiles together take at most ``enough``:
    a barrier is dearer than a few bytes.

    ``transient``: tiles that are filled anew before each use, so that no value stays in them from one iteration of a loop to the
    next. Tiles whose address is given to an engine are never shared: a barrier does not tell when the engine is done.
    """
    whole = (-1, 1 << 62)
    if sum(-(-size_of(b) // a) * a for b, a in tiles.items()) <= enough:
        return _placed(tiles, dict.fromkeys(tiles, whole))
    lives = lifetimes(body, transient)
    always = {p.buffer.storage for s in statements(body) for p in places(s) if p.window}
    return _placed(tiles, {b: whole if b in always else lives.get(b, (-1, -1)) for b in tiles})


def _placed(tiles: Mapping[Buffer, int], spans: Mapping[Buffer, Span]) -> Arena:
    """The largest first, each at the lowest place that is free as long as it lives."""
    offsets: dict[Buffer, int] = {}
    for b in sorted(tiles, key=lambda b: -size_of(b)):
        taken = sorted((offsets[o], offsets[o] + size_of(o)) for o in offsets if _meet(spans[b], spans[o]))
        offsets[b] = _gap(taken, size_of(b), tiles[b])
    sharing = {b: frozenset(o for o in tiles if o != b and _overlap(offsets, b, o)) for b in tiles}
    return Arena(offsets, sharing, max((offsets[b] + size_of(b) for b in tiles), default=0))


def size_of(b: Buffer) -> int:
    """Bytes of a flat tile."""
    return prod(d for d in b.shape if isinstance(d, int)) * b.dtype.bytes


def _meet(a: Span, b: Span) -> bool:
    return a[0] <= b[1] and b[0] <= a[1]


def _overlap(offsets: Mapping[Buffer, int], a: Buffer, b: Buffer) -> bool:
    return offsets[a] < offsets[b] + size_of(b) and offsets[b] < offsets[a] + size_of(a)


def _gap(taken: Sequence[Span], size: int, alignment: int) -> int:
    """The lowest aligned place of ``size`` bytes between what is taken."""
    at = 0
    for first, last in taken:
        if at + size <= first:
            break
        at = max(at, -(-last // alignment) * alignment)
    return at


@dataclass
class _Clock:
    """Numbers steps in program order; ``uses``: for each tile the step and the loops (by their first step) around it."""

    now: int = 0
    ends: dict[int, int] = field(default_factory=dict[int, int])
    uses: dict[Buffer, list[tuple[int, tuple[int, ...]]]] = field(
        default_factory=dict[Buffer, "list[tuple[int, tuple[int, ...]]]"]
    )

    def use(self, buffers: Collection[Buffer], loops: tuple[int, ...]) -> None:
        for b in buffers:
            if b.space is Space.SHARED:
                self.uses.setdefault(b, []).append((self.now, loops))
        self.now += 1

    def walk(self, body: Sequence[Stmt], loops: tuple[int, ...]) -> None:
        for s in body:
            inner = block_level(s)
            if inner is None:
                found = touched((s,))
                self.use(found.read | found.written, loops)
                continue
            start = self.now
            around = (*loops, start) if isinstance(s, For | While) else loops
            asked = header(s)
            self.use(asked.read | asked.written, around)
            for part in inner:
                self.walk(part, around)
            self.use(asked.read | asked.written, around)
            self.ends[start] = self.now


def lifetimes(body: Sequence[Stmt], transient: Collection[Buffer]) -> dict[Buffer, Span]:
    """First and last step at which each tile holds something."""
    clock = _Clock()
    clock.walk(body, ())
    out: dict[Buffer, Span] = {}
    for b, uses in clock.uses.items():
        common = _common([loops for _, loops in uses]) if b in transient else 0
        spans = [
            (loops[common], clock.ends[loops[common]]) if len(loops) > common else (now, now)
            for now, loops in uses
        ]
        out[b] = (min(first for first, _ in spans), max(last for _, last in spans))
    return out


def _common(stacks: Sequence[tuple[int, ...]]) -> int:
    """Loops that all uses are in."""
    count = 0
    for level in zip(*stacks, strict=False):
        if len(set(level)) > 1:
            break
        count += 1
    return count
