"""Attention whose keys are split over blocks: each block's result and LSE, and the launch that makes one result of them."""

from __future__ import annotations

import tile_core.language as T

AT_ONCE = 8  # partial results on their way at the same time


@T.macro
def combine(Partial, Lse, Output):
    """``Partial``: (batch, heads, splits, dim); ``Lse``: (batch, heads, splits), -inf of a split without keys."""
    batch, heads, splits, dim = Partial.shape
    with T.Kernel(heads, batch, threads=128) as (bx, by):
        parts = T.alloc_fragment((1, splits), "float32")
        factors = T.alloc_shared((1, splits), "float32")
        top = T.alloc_fragment((1,), "float32")
        total = T.alloc_fragment((1,), "float32")
        acc = T.alloc_fragment((1, dim), "float32")
        rows = [T.alloc_fragment((1, dim), "float32") for _ in range(min(splits, AT_ONCE))]
        for s in [*range(len(rows))]:
            T.copy(Partial[by, bx : bx + 1, s, :], rows[s])
        T.copy(Lse[by, bx : bx + 1, :], parts)
        T.reduce_max(parts, top, dim=1)
        for i, s in T.Parallel(1, splits):
            parts[i, s] = T.if_then_else(top[i] == -T.infinity("float32"), 0, T.exp(parts[i, s] - top[i]))
        T.reduce_sum(parts, total, dim=1)
        T.copy(parts, factors)
        T.clear(acc)
        for s in [*range(splits)]:
            row = rows[s % AT_ONCE]
            for i, d in T.Parallel(1, dim):
                acc[i, d] += factors[i, s] * row[i, d]
            if s + AT_ONCE < splits:
                T.copy(Partial[by, bx : bx + 1, s + AT_ONCE, :], row)
        for i, d in T.Parallel(1, dim):
            acc[i, d] = T.if_then_else(total[i] > 0, acc[i, d] / total[i], 0)
        T.copy(acc, Output[by, bx : bx + 1, :])


@T.macro
def load_rows(cache, tile, table, b, row, head=None):
    """Rows of sequence ``b`` from ``row`` on, which is a multiple of the tile's rows.

    Without ``table`` the cache is (batch, rows, heads, dim); with it (pages, rows of a page, heads, dim), and
    ``table[b, n]`` is the page that holds the sequence's ``n``-th one. ``head`` None: there is no such dimension.
    """
    size, page = tile.shape[0], cache.shape[1]
    step = size if table is None else min(size, page)
    for p in [*range(0, size, step)]:
        first, number = row + p, b
        if table is not None:
            number = table[b, T.min(first // page, table.shape[1] - 1)]
            first = first % page
        if head is None:
            T.copy(cache[number, first : first + step, :], tile[p : p + step, :])
        else:
            T.copy(cache[number, first : first + step, head, :], tile[p : p + step, :])
