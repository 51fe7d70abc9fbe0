"""Reductions: the result lives where the elements it was made from live, with copies along the reduced dimension."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from ...layout.algebra import project
from ...layout.layout import Layout
from ..model import Reduction


def result_layout(op: Reduction, source: Layout) -> Layout | None:
    """The layout that a reduction gives its result. None when a digit of the source straddles two dimensions."""
    return _projected(source, op.dim, op.kept)


@lru_cache(maxsize=4096)
def _projected(source: Layout, dim: int, kept: bool) -> Layout | None:
    out = project(source, [d for d in range(len(source.shape)) if d != dim])
    if out is None or not (kept or not out.shape):
        return out
    shape, box = list(out.shape), list(out.box)
    at = dim if kept else 0  # a full reduction gives a tile of one element
    shape.insert(at, 1)
    box.insert(at, 1)
    assert prod(box) == prod(out.box)
    return Layout(tuple(shape), out.iters, out.replicas, out.offset, box=tuple(box))
