"""Shared tiles come last: all their readers and writers are known, so a layout is computed, not propagated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import prod

from ..expr import Space
from ..layout.access import Pattern, pattern
from ..layout.algebra import access as access_map
from ..layout.algebra import cut
from ..layout.digits import mem
from ..layout.layout import Iter, Layout, Shape
from ..layout.panels import CHUNK_BITS, core_matrices, row_major
from ..layout.swizzle import Choice, choose, legal_spans
from .cost import memory_map
from .maps import Index
from .model import Access, Elementwise, Multiply, Solution, Tile
from .rules.gemm import needs

WIDTHS = (8, 16, 32, 64, 128)  # bits of elements that swizzles are made for
FREE, PREFERRED, REQUIRED = range(
    3
)  # may the layout be anything, or only what bulk copies and the matrix unit know


@dataclass(frozen=True, slots=True)
class Demand:
    """Someone reads or writes the tile: through a fragment's layout over ``shape``, or through ``access`` in a loop.

    ``matrix``: loads and stores of 8x8 matrices may do it.
    """

    name: str
    fragment: Layout | None = None
    shape: Shape = ()
    access: Access | None = None
    op: Elementwise | None = None
    loop: Layout | None = None
    matrix: bool = True


def shared_layouts(solution: Solution) -> dict[str, Choice]:
    """The layout of every shared tile, by name."""
    out: dict[str, Choice] = {}
    for name, tile in solution.problem.tiles().items():
        if tile.space is Space.SHARED and name not in solution.problem.homes:
            pinned = solution.problem.pinned.get(name)
            out[name] = Choice(pinned, 0, 0, "pinned") if pinned else _chosen(tile, solution)
    return out


def _chosen(tile: Tile, solution: Solution) -> Choice:
    if len(tile.shape) < 2 or tile.bits not in WIDTHS:
        return Choice(row_major(tile.shape), 0, 0, "linear")
    flat = Flat.of(tile, solution)
    demands, bulk = _demands(tile, flat, solution)
    threads, subgroup = solution.problem.threads, solution.info.subgroup
    of = partial(_patterns, demands=demands, bits=tile.bits, threads=threads, subgroup=subgroup)
    spans = legal_spans(flat.shape[1], tile.bits, solution.info.panel_spans) if bulk else []
    if bulk == REQUIRED and not any(spans):
        found = Choice(_unswizzled(flat.shape, tile.bits), 0, 0, "no swizzle")
    elif spans:
        found = choose(flat.shape, tile.bits, of, spans)
        if found.conflicts and bulk == PREFERRED:
            other = choose(flat.shape, tile.bits, of)
            found = other if other.passes < found.passes else found
    else:
        found = choose(flat.shape, tile.bits, of)
    return replace(found, layout=flat.lifted(found.layout))


def _unswizzled(shape: tuple[int, int], bits: int) -> Layout:
    """What a matrix unit reads without a swizzle: 8-row cores of 16 bytes, if the tile is made of them."""
    whole = shape[0] % 8 == 0 and shape[1] * bits % CHUNK_BITS == 0
    return core_matrices(shape, bits) if whole else row_major(shape)


@dataclass(frozen=True, slots=True)
class Flat:
    """A tile seen with two dimensions. ``deep``: loops move along leading dimensions, so these are rows too;
    else the tile is a row of equal slots."""

    full: Shape
    shape: tuple[int, int]
    deep: bool

    @staticmethod
    def of(tile: Tile, solution: Solution) -> Flat:
        lead = len(tile.shape) - 2
        deep = lead > 0 and any(
            i.digits or i.opaque
            for op in solution.problem.ops
            if isinstance(op, Elementwise)
            for a in op.accesses
            if a.tile == tile
            for i in a.index[:lead]
        )
        rows = prod(tile.shape[:-1]) if deep else tile.shape[-2]
        return Flat(tile.shape, (rows, tile.shape[-1]), deep)

    def index(self, index: Sequence[Index]) -> tuple[Index, ...]:
        """An index of the tile as one of the flat tile; which slot it is does not matter."""
        if len(index) == 2:
            return tuple(index)
        if not self.deep:
            return tuple(index[-2:])
        row = Index()
        for d, i in enumerate(index[:-1]):
            row = row + i * prod(self.full[d + 1 : -1])
        return row, index[-1]

    def lifted(self, layout: Layout) -> Layout:
        """The layout of the whole tile."""
        if len(self.full) == 2:
            return layout
        if self.deep:
            return replace(layout, shape=self.full, box=self.full)
        step = layout.footprint()
        lead: list[Iter] = []
        for n in reversed(self.full[:-2]):
            lead.insert(0, mem(n, step))
            step *= n
        return replace(layout, shape=self.full, box=self.full, iters=(*lead, *layout.iters))


def _demands(tile: Tile, flat: Flat, solution: Solution) -> tuple[tuple[Demand, ...], int]:
    """Who reads and writes the tile, and how strictly its layout is bound to spans."""
    found: list[Demand] = []
    bulk = FREE
    for op in solution.problem.ops:
        match op:
            case Elementwise() if any(a.tile == tile for a in op.accesses):
                if op.bulk and solution.info.panel_spans and not op.fragments:
                    bulk = max(bulk, PREFERRED)
                    continue
                found += _of_loop(op, tile, flat, solution.loops[op.name])
            case Multiply():
                atom = solution.gemms[op.name].atom
                mine = [(t, need) for t, need in needs(op, solution.gemms[op.name]) if _is(t, tile, solution)]
                if mine and atom is not None and atom.shared_a:
                    bulk = REQUIRED
                    continue
                found += [Demand(op.name, need, shape=t.shape) for t, need in mine if need is not None]
    return tuple(found), bulk


def _is(part: Tile, tile: Tile, solution: Solution) -> bool:
    """Whether ``part`` is the tile, or an operand that is a part of it."""
    return part == tile or solution.problem.homes.get(part.name, ("",))[0] == tile.name


def _of_loop(op: Elementwise, tile: Tile, flat: Flat, loop: Layout) -> Iterator[Demand]:
    matrix = bool(op.fragments)
    for a in op.accesses:
        if a.tile == tile and not a.opaque:
            yield Demand(
                op.name, access=replace(a, index=flat.index(a.index)), op=op, loop=loop, matrix=matrix
            )


def _patterns(
    layout: Layout, demands: Sequence[Demand], bits: int, threads: int, subgroup: int
) -> list[Pattern]:
    """The accesses of one subgroup under a candidate layout."""
    out: list[Pattern] = []
    for d in demands:
        if d.access is not None and d.op is not None and d.loop is not None:
            found = memory_map(d.access, d.op, d.loop, layout, threads)
        else:
            assert d.fragment is not None
            part = layout if d.shape == layout.shape else cut(layout, (0, 0), d.shape)
            found = part and access_map(d.fragment, part, threads)
        if found is not None:
            out.append(_pattern(d.name, found, bits, subgroup, d.matrix))
    return out


_pattern = lru_cache(maxsize=4096)(pattern)
