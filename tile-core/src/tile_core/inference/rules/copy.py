"""Copies, fills, transposes and atomic tiles: loop nests with one iteration for each element."""

from __future__ import annotations

from collections.abc import Sequence

from ...expr import Expr
from ...program import AtomicTile, Copy, Fill, Quantify, Region, Transpose
from ..maps import Index
from ..model import Elementwise
from ..nest import Nest

ATOMIC = 4  # instructions that an atomic update stands for


def trimmed(shape: Sequence[int | Expr], rank: int) -> Sequence[int | Expr]:
    """The last ``rank`` extents: what stands before them is 1."""
    return shape[len(shape) - rank :] if rank else ()


def rank_of(*regions: Region) -> int:
    """Dimensions that regions have in common after leading ones of extent 1 are dropped."""
    return max((len(_core(r.shape)) for r in regions), default=0)


def _core(shape: Sequence[int | Expr]) -> Sequence[int | Expr]:
    k = 0
    while k < len(shape) and shape[k] == 1:
        k += 1
    return shape[k:]


def extents_of(*regions: Region) -> list[int] | None:
    """The extents of a copy between ``regions``: of each dimension the one that is a number. None if there is none."""
    rank = rank_of(*regions)
    out: list[int] = []
    for sizes in zip(*(trimmed(r.shape, rank) for r in regions if len(r.shape) >= rank), strict=True):
        known = [n for n in sizes if isinstance(n, int)]
        if not known:
            return None
        out.append(min(known))
    return out


def read_copy(nest: Nest, s: Copy) -> Elementwise | None:
    """The op of a copy. ``bulk`` if it moves a box between memories as it is."""
    return _pair(nest, s.src, s.dst, bulk=s.src.dtype == s.dst.dtype and _rows(s.src) and _rows(s.dst))


def _rows(r: Region) -> bool:
    """Whether the region's last dimension is contiguous."""
    return bool(r.point) and not r.point[-1] and r.buffer.row_major_strides()[-1] == 1


def _pair(nest: Nest, src: Region, dst: Region, work: int = 1, bulk: bool = False) -> Elementwise | None:
    extents = extents_of(src, dst)
    if extents is None:
        return None
    along = [nest.loop(n) for n in extents]
    for r in (src, dst):
        nest.adopt(r.buffer, r.start)
    nest.region(src, along, False)
    nest.region(dst, along, True)
    return nest.op(work, bulk)


def read_transpose(nest: Nest, s: Transpose) -> Elementwise | None:
    """The op of a transpose: the last two loops change places on the source's side."""
    extents = extents_of(s.dst)
    if extents is None or len(extents) < 2:
        return None
    along = [nest.loop(n) for n in extents]
    for r in (s.src, s.dst):
        nest.adopt(r.buffer, r.start)
    turned: list[Index] = [*along[:-2], along[-1], along[-2]]
    nest.region(s.src, turned, False)
    nest.region(s.dst, along, True)
    return nest.op()


def read_fill(nest: Nest, s: Fill) -> Elementwise | None:
    """The op of a fill."""
    return _single(nest, s.dst, True)


def _single(nest: Nest, r: Region, write: bool) -> Elementwise | None:
    extents = extents_of(r)
    if extents is None:
        return None
    along = [nest.loop(n) for n in extents]
    nest.adopt(r.buffer, r.start)
    nest.region(r, along, write)
    return nest.op()


def read_atomic(nest: Nest, s: AtomicTile) -> Elementwise | None:
    """The op of an atomic update of every element."""
    return _pair(nest, s.value, s.dst, ATOMIC)


def read_quantify(nest: Nest, s: Quantify) -> Elementwise | None:
    """The op that looks at every element; the threads' answers are combined whatever the layout is."""
    return _single(nest, s.src, False)
