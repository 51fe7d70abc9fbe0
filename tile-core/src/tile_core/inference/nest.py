"""The loops and accesses of one op: takes buffers with index expressions, gives digit-wise accesses of tiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import gcd, prod

from ..dtypes import DType
from ..expr import Buffer, Expr, Space, Var, variables
from ..program import For, Region
from .indices import Facts, Place, divisor, place
from .maps import OPAQUE, Digit, Index
from .model import Access, Elementwise, Tile


def element_bits(type: DType) -> int:
    """Bits of an element as it is stored: a truth value takes a byte."""
    return 8 if type.is_bool else type.bits * type.lanes


FAR = 1 << 20  # stands for a stride that is known at run time only
HELD = (Space.FRAGMENT, Space.SHARED)


@dataclass(slots=True)
class Tiles:
    """Tiles of one launch: each fragment and shared buffer has one, named uniquely. Views use that of their storage."""

    by_buffer: dict[Buffer, Tile] = field(default_factory=dict[Buffer, Tile])
    buffers: dict[str, Buffer] = field(default_factory=dict[str, Buffer])

    def of(self, buffer: Buffer) -> Tile:
        """The tile of a storage buffer of known shape."""
        tile = self.by_buffer.get(buffer)
        if tile is None:
            name = buffer.name if buffer.name not in self.buffers else f"{buffer.name}.{buffer.number}"
            shape = buffer.static_shape
            assert shape is not None, buffer.name
            tile = self.by_buffer[buffer] = Tile(
                name, shape or (1,), element_bits(buffer.dtype), buffer.space
            )
            self.buffers[name] = buffer
        return tile


def outer_index(loop: For, number: int) -> Index | None:
    """The values of a loop variable as an index, if they are known."""
    start = place(loop.start, {})
    if not isinstance(loop.extent, int) or loop.extent < 1:
        return None
    if loop.step < 1 or start.align or start.index.constant < 0:
        return None
    return Index((Digit(number, 1, loop.extent, loop.step),), start.index.constant)


@dataclass(slots=True)
class Nest:
    """The loops of one op while its accesses are read. ``around``: serial loops outside, which become loops of the nest
    when they move along a fragment.
    """

    name: str
    tiles: Tiles
    around: dict[Var, For]
    loops: dict[Var, Index] = field(default_factory=dict[Var, Index])
    extents: list[int] = field(default_factory=list[int])
    serial: int = 0
    outside: int = 1  # how often the loops taken from outside repeat the op
    found: dict[Access, None] = field(default_factory=dict[Access, None])
    facts: Facts = field(default_factory=dict[Var, int])

    def loop(self, extent: int) -> Index:
        """One more loop of the nest."""
        self.extents.append(extent)
        return Index((Digit(len(self.extents) - 1, 1, extent, 1),))

    def within(self, loop: For) -> None:
        """A serial loop inside the nest; one of unknown length is left to run time."""
        if loop.var is not None and (index := outer_index(loop, len(self.extents))) is not None:
            self._serial(loop.var, index, loop.extent)

    def _serial(self, var: Var, index: Index, extent: int | Expr) -> None:
        assert isinstance(extent, int)
        self.loops[var] = index
        self.extents.append(extent)
        self.serial += 1

    def adopt(self, buffer: Buffer, indices: Sequence[Expr]) -> None:
        """Take in the serial loops outside that the index of a fragment uses: each thread must serve all of them."""
        if buffer.space is not Space.FRAGMENT or not self.around:
            return
        for v in (v for x in indices for v in variables(x)):
            loop = self.around.get(v)
            if loop is not None and v not in self.loops and (index := outer_index(loop, len(self.extents))):
                self._serial(v, index, loop.extent)
                self.outside *= loop.extent if isinstance(loop.extent, int) else 1

    def element(self, buffer: Buffer, indices: Sequence[Expr], write: bool) -> None:
        """An access of one element."""
        self.access(buffer, [place(x, self.loops, self.facts) for x in indices], write)

    def region(self, r: Region, along: Sequence[Index], write: bool) -> None:
        """An access of a region; ``along``: the loop of each dimension that counts, for the last ones."""
        rest = list(along)
        places: list[Place] = []
        counting = [not p for p in r.point]
        skip = sum(counting) - len(rest)  # leading dimensions of extent 1
        for start, counts in zip(r.start, counting, strict=True):
            at = place(start, self.loops, self.facts)
            if counts and skip > 0:
                skip -= 1
            elif counts:
                at = at + Place(rest.pop(0))
            places.append(at)
        self.access(r.buffer, places, write)

    def held(self, tile: Tile, along: Sequence[Index], write: bool) -> None:
        """An access of a fragment that has no buffer."""
        self.found.setdefault(Access(tile, tuple(along), write))

    def access(self, buffer: Buffer, places: Sequence[Place], write: bool) -> None:
        """Note an access; private arrays and scalars of a thread say nothing about layouts."""
        if buffer.space is Space.GLOBAL:
            self.found.setdefault(self._window(buffer, places, write))
        elif buffer.space in HELD:
            tile = self.tiles.of(buffer.storage)
            index = [self._kept(p, buffer.space) for p in places] or [Index()]
            if buffer.source is not None:
                index = list(_viewed(buffer, index, tile.shape))
            self.found.setdefault(Access(tile, tuple(index), write))

    def _kept(self, p: Place, space: Space) -> Index:
        """What a layout can say of an index. Shared memory takes any offset, registers are named at compile time."""
        if space is Space.FRAGMENT and (p.align or p.index.constant < 0):
            return OPAQUE
        return p.index

    def _window(self, buffer: Buffer, places: Sequence[Place], write: bool) -> Access:
        """A tensor as the box that the loops sweep, with what is known of its alignment."""
        strides = buffer.row_major_strides()
        align = divisor(buffer.shape[-1], self.facts) if buffer.ndim else 0  # a bound may cut a row there
        shape: list[int] = []
        steps: list[int] = []
        index: list[Index] = []
        for p, s in zip(places, strides, strict=True):
            d = divisor(s, self.facts)
            align = gcd(align, gcd(p.align, p.index.constant) * d)
            if p.index.opaque:
                index.append(OPAQUE)
            elif p.index.digits:
                index.append(Index(p.index.digits))
                align = align if isinstance(s, int) else gcd(align, d)
            else:
                continue
            shape.append(1 + sum(abs(x.top) for x in p.index.digits))
            steps.append(s if isinstance(s, int) else FAR * max(d, 1))
        name = f"{self.name}:{buffer.name}"
        tile = Tile(
            name, tuple(shape) or (1,), element_bits(buffer.dtype), Space.GLOBAL, tuple(steps) or (1,), align
        )
        return Access(tile, tuple(index) or (Index(),), write)

    def op(self, work: int = 1, bulk: bool = False, everywhere: bool = False) -> Elementwise:
        """The op with all accesses noted."""
        extents = tuple(self.extents) or (1,)
        return Elementwise(self.name, extents, tuple(self.found), work, self.serial, bulk, everywhere)


def _viewed(view: Buffer, index: Sequence[Index], shape: tuple[int, ...]) -> Iterator[Index]:
    """An index of a view as one of its storage: through the row-major number of the element."""
    of, storage = view.static_shape, view.storage
    ratio = view.dtype.bits / storage.dtype.bits
    whole = ratio == int(ratio) or storage.dtype.bits % view.dtype.bits == 0
    if (
        of is None
        or any(i.opaque for i in index)
        or not whole
        or (ratio != 1 and view.space is Space.FRAGMENT)
    ):
        yield from (OPAQUE for _ in shape)
        return
    number = Index()
    for d, i in enumerate(index):
        number = number + i * prod(of[d + 1 :])
    number = number * int(ratio) if ratio >= 1 else number // int(1 / ratio)
    for d, n in enumerate(shape):
        at = number // prod(shape[d + 1 :])
        yield at % n if d else at
