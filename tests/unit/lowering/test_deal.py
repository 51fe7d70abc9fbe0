"""Tiles dealt out to blocks: each once, and nobody has much more to do than the others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tile_core.expr import Load
from tile_core.lowering.simt.deal import dealt


@given(st.lists(st.integers(1, 40), min_size=1, max_size=200), st.integers(1, 20))
def test_each_tile_once(work: list[int], blocks: int) -> None:
    found = dealt(range(len(work)), dict(enumerate(work)), blocks)
    assert sorted(n for tiles in found.tiles for n in tiles) == list(range(len(work)))
    assert found.blocks == blocks


@given(st.lists(st.integers(1, 40), min_size=1, max_size=200), st.integers(1, 20))
def test_longest_first_is_near_the_best(work: list[int], blocks: int) -> None:
    # Graham 1969: at most 4/3 of the best, which is no less than the mean and the longest
    order = sorted(range(len(work)), key=lambda n: -work[n])
    found = dealt(order, dict(enumerate(work)), blocks)
    most = max(sum(work[n] for n in tiles) for tiles in found.tiles)
    # with more tiles than blocks somebody has two of the longest ones
    two = sum(sorted(work)[-blocks - 1 : -blocks + 1 or None][:2]) if len(work) > blocks else 0
    assert most <= 4 / 3 * max(sum(work) / blocks, max(work), two) + max(work) / 3


def test_tables_are_read_by_block_and_turn() -> None:
    found = dealt([3, 1, 0, 2], {0: 1, 1: 5, 2: 1, 3: 9}, 2)
    assert found.tiles == ((3,), (1, 0, 2))
    first, tiles = (a.values for a in found.tables())
    assert first == (0, 1, 4)
    assert tiles == (3, 1, 0, 2)
    from tile_core.expr import const

    assert isinstance(found.tile(const(1), const(2)), Load)
