"""Shared tiles come last: all their readers and writers are known, so a layout is computed, not propagated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import gcd, prod

from ..expr import Space
from ..hardware import TargetInfo
from ..layout.access import Passes, Pattern, pattern
from ..layout.algebra import access as access_map
from ..layout.algebra import cut
from ..layout.digits import mem
from ..layout.layout import Layout, Shape
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
    flat = Flat.of(tile, solution)
    if flat.shape[0] == 1 or tile.bits not in WIDTHS:
        return Choice(row_major(tile.shape), 0, 0, "linear")
    demands, bulk = _demands(tile, flat, solution)
    space = solution.info.space("shared")
    if not bulk and space is not None and not space.banks:
        return Choice(row_major(tile.shape), 0, 0, "no banks")
    threads, subgroup = solution.problem.threads, solution.info.subgroup
    passes = space.passes if space else ()
    of = partial(
        _patterns, demands=demands, bits=tile.bits, threads=threads, subgroup=subgroup, passes=passes
    )
    spans = _boxes(flat.shape, tile.bits, solution.info, _unit(tile, solution)) if bulk else []
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


def _unit(tile: Tile, solution: Solution) -> int:
    """Columns from one start of a matrix instruction's operand to the next, where rows of the tile do not run along k; else 0.

    An operand begins with a panel, also one that is a part of the tile: the unit goes from panel to panel by one distance (PTX
    ISA, matrix descriptors, and alike elsewhere).
    """
    out = 0
    for op in solution.problem.ops:
        choice = solution.gemms.get(op.name) if isinstance(op, Multiply) else None
        if not isinstance(op, Multiply) or choice is None or choice.atom is None or not choice.atom.shared_a:
            continue
        for part in (op.a, op.b):
            if _is(part, tile, solution) and (home := solution.problem.homes.get(part.name)) is not None:
                out = gcd(out, home.column)
        if _is(op.b, tile, solution) and not op.b_transposed:
            out = gcd(out, choice.n)
        if _is(op.a, tile, solution) and op.a_transposed:
            out = gcd(out, choice.atom.shape[0])
    return out


def _boxes(shape: tuple[int, int], bits: int, info: TargetInfo, unit: int) -> list[int]:
    """Spans of a tile whose panels each begin where the copy engine can write, and at which operands begin."""
    rows, columns = shape
    place = info.bulk.place if info.bulk else 1
    return [
        span
        for span in legal_spans(columns, bits, info.panel_spans)
        if (columns * bits == span * 8 or rows * span % place == 0) and unit * bits % ((span or 1) * 8) == 0
    ]


def _unswizzled(shape: tuple[int, int], bits: int) -> Layout:
    """What a matrix unit reads without a swizzle: 8-row cores of 16 bytes, if the tile is made of them."""
    whole = shape[0] % 8 == 0 and shape[1] * bits % CHUNK_BITS == 0
    return core_matrices(shape, bits) if whole else row_major(shape)


@dataclass(frozen=True, slots=True)
class Flat:
    """A tile of shape ``full`` seen with two dimensions. ``slots``: it is that many tiles of ``shape``, all laid out alike;
    1: rows are the leading dimensions together, or a gemm sees the tile in ``shape``.
    """

    full: Shape
    shape: tuple[int, int]
    slots: int = 1

    @staticmethod
    def of(tile: Tile, solution: Solution) -> Flat:
        for home in solution.problem.homes.values():
            if home.tile == tile.name and home.view and len(home.shape) == 2:
                return Flat(tile.shape, (home.shape[0], home.shape[1]))
        lead = len(tile.shape) - 2
        if lead > 0 and any(
            i.digits or i.opaque
            for op in solution.problem.ops
            if isinstance(op, Elementwise)
            for a in op.accesses
            if a.tile == tile
            for i in a.index[:lead]
        ):
            return Flat(tile.shape, (prod(tile.shape[:-1]), tile.shape[-1]))
        rows, columns = (1, *tile.shape)[-2:]
        return Flat(tile.shape, (rows, columns), prod(tile.shape[:-2]))

    def index(self, index: Sequence[Index]) -> tuple[Index, ...]:
        """An index of the tile as one of the flat tile; which slot it is does not matter."""
        if self.full[-2:] == self.shape:
            return tuple(index[-2:])
        number = Index()
        for d, i in enumerate(index):
            number = number + i * prod(self.full[d + 1 :])
        return number // self.shape[1], number % self.shape[1]

    def lifted(self, layout: Layout) -> Layout:
        """The layout of the whole tile. Other shapes of one memory have the same digits in row-major order."""
        step = layout.footprint()
        lead = (mem(self.slots, step),) if self.slots > 1 else ()
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
                found += [
                    Demand(op.name, need, shape=t.shape) for t, need in mine if need and len(t.shape) == 2
                ]
            case _:
                pass
    return tuple(found), bulk


def _is(part: Tile, tile: Tile, solution: Solution) -> bool:
    """Whether ``part`` is the tile, or an operand that lies in it."""
    home = solution.problem.homes.get(part.name)
    return part == tile or (home is not None and home.tile == tile.name and bool(home.shape))


def _of_loop(op: Elementwise, tile: Tile, flat: Flat, loop: Layout) -> Iterator[Demand]:
    matrix = bool(op.fragments)
    for a in op.accesses:
        if a.tile == tile and not a.opaque:
            yield Demand(
                op.name, access=replace(a, index=flat.index(a.index)), op=op, loop=loop, matrix=matrix
            )


def _patterns(
    layout: Layout, demands: Sequence[Demand], bits: int, threads: int, subgroup: int, passes: Passes
) -> list[Pattern]:
    """The accesses of one subgroup under a candidate layout. ``passes``: of reads."""
    out: list[Pattern] = []
    for d in demands:
        if d.access is not None and d.op is not None and d.loop is not None:
            found = memory_map(d.access, d.op, d.loop, layout, threads)
        else:
            assert d.fragment is not None
            part = layout if d.shape == layout.shape else cut(layout, (0, 0), d.shape)
            found = part and access_map(d.fragment, part, threads)
        if found is not None:
            writes = d.access is not None and d.access.write
            out.append(_pattern(d.name, found, bits, subgroup, d.matrix, () if writes else passes))
    return out


_pattern = lru_cache(maxsize=4096)(pattern)
