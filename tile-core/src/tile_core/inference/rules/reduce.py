"""Reductions: the result lives where the elements it was made from live, with copies along the reduced dimension."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from ...layout.algebra import project
from ...layout.layout import Layout


@lru_cache(maxsize=4096)
def result_layout(source: Layout, dim: int, kept: bool) -> Layout | None:
    """The layout that a reduction along ``dim`` gives its result. ``kept``: the result has extent 1 there.

    None when a digit of the source straddles two dimensions.
    """
    out = project(source, [d for d in range(len(source.shape)) if d != dim])
    if out is None or not (kept or not out.shape):
        return out
    shape, box = list(out.shape), list(out.box)
    at = dim if kept else 0  # a full reduction gives a tile of one element
    shape.insert(at, 1)
    box.insert(at, 1)
    assert prod(box) == prod(out.box)
    return Layout(tuple(shape), out.iters, out.replicas, out.offset, box=tuple(box))
