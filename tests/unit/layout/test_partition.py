from __future__ import annotations

from collections import Counter

import pytest
from brute import held, injective, points
from hypothesis import given
from hypothesis import strategies as st

from tile_core.layout.layout import Axis, Iter
from tile_core.layout.partition import combining, guards, idle_threads, partitions

extents = st.lists(st.sampled_from([1, 2, 3, 5, 8, 16, 33, 48, 104, 229]), min_size=1, max_size=3).map(tuple)


@given(extents, st.sampled_from([32, 48, 96, 128, 384]), st.sampled_from([1, 2, 4, 8]))
def test_partitions_cover_once(shape: tuple[int, ...], threads: int, vector: int) -> None:
    total = 1
    for n in shape:
        total *= n
    if total > 4000:
        return
    for layout in partitions(shape, threads, vector)[:4]:
        assert injective(layout)
        everyone = held(layout)
        assert max(everyone) < threads
        assert len(points(layout)) == total  # each element has a place; holes are what the guards cut off
        assert all(g.box > g.extent for g in guards(layout)) and bool(guards(layout)) == (
            any(g.box > g.extent for g in guards(layout))
        )
        assert idle_threads(layout, threads) >= 0


def test_vectors_are_not_cut_by_guards() -> None:
    for layout in partitions((64, 229), 128, 8):
        assert (
            all(it.extent == 1 for it in layout.iters[-1:])
            or layout.iters[-1].stride != 1
            or 229 % layout.iters[-1].extent == 0
        )


@pytest.mark.parametrize(
    "digits", [[(48, 1)], [(3, 16), (16, 1)], [(4, 1)], [(2, 128), (4, 1)], [(12, 4)], [(5, 1)], [(96, 1)]]
)
def test_combining_sums_every_thread_once(digits: list[tuple[int, int]]) -> None:
    iters = [Iter(e, s, Axis.THREAD) for e, s in digits]
    plan = combining(iters)
    group = {0}
    for it in iters:
        group = {g + d * it.stride for g in group for d in range(it.extent)}
    got = {t: Counter({t: 1}) for t in group}
    for mask in plan.shuffles:
        assert all(t ^ mask in group and (t ^ mask) // 32 == t // 32 for t in group)
        got = {t: got[t] + got[t ^ mask] for t in group}
    partial = {frozenset(c.items()) for c in got.values()}
    assert len(partial) == plan.shared  # what is left to add through shared memory
    total: Counter[int] = Counter()
    for p in partial:
        total += Counter(dict(p))
    assert total == Counter(dict.fromkeys(group, 1))
