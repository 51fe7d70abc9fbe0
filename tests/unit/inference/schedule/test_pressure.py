"""Registers that tiles take at once, and schedules that keep within them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tile_core.inference import quotas
from tile_core.inference.schedule.model import Body, Dep, Op, Read, Storage, Stream, Unit
from tile_core.inference.schedule.modulo import timing
from tile_core.inference.schedule.pressure import excess, pressure
from tile_core.inference.schedule.timing import Timing

THREADS = 128


def tile(name: str, registers: int, carried: bool = False) -> Storage:
    return Storage(name, "register", 4 * THREADS * registers, 1, carried, "main")


def step(name: str, clocks: int, read: tuple[str, ...] = (), writes: tuple[str, ...] = ()) -> Op:
    return Op(name, "main", latency=clocks, reads=tuple(map(Read, read)), writes=writes)


def body(*ops: Op, budget: int = 0) -> Body:
    tiles = (tile("a", 32), tile("b", 64))
    return Body("loop", (Unit("tensor"),), (Stream("main", THREADS, budget=budget),), tiles, ops)


AFTER = body(
    step("wa", 10, (), ("a",)), step("ra", 10, ("a",)), step("wb", 10, (), ("b",)), step("rb", 10, ("b",))
)


def at(**issue: int) -> Timing:
    return Timing(40, issue, issue)


def test_tiles_one_after_the_other_share_registers() -> None:
    assert pressure(AFTER, at(wa=0, ra=10, wb=20, rb=30), "main") == 64


def test_tiles_at_the_same_time_do_not() -> None:
    assert pressure(AFTER, at(wa=0, wb=10, ra=20, rb=30), "main") == 96


def test_a_tile_may_live_over_the_end_of_an_interval() -> None:
    """b of iteration 0 is read when a of iteration 1 is there already."""
    assert pressure(AFTER, at(wa=0, ra=10, wb=20, rb=45), "main") == 96


def test_what_an_iteration_finds_is_always_alive() -> None:
    sums = replace(
        AFTER, ops=(*AFTER.ops[:2], Op("add", "main", latency=10, reads=(Read("b"),), updates=("b",)))
    )
    assert (
        pressure(sums, Timing(40, {"wa": 0, "ra": 10, "add": 20}, {"wa": 0, "ra": 10, "add": 20}), "main")
        == 96
    )


@pytest.mark.parametrize(("budget", "more"), [(0, 0), (96, 0), (80, 16)])
def test_excess(budget: int, more: int) -> None:
    full = replace(AFTER, streams=(Stream("main", THREADS, budget=budget),))
    assert excess(full, at(wa=0, wb=10, ra=20, rb=30)) == more


def test_the_search_keeps_within_the_budget() -> None:
    """Where both tiles may be there at once the reads wait for both; else each is read before the other is written."""
    deps = [Dep(f"w{t}", f"r{t}", 0, "RAW", t) for t in "ab"]
    deps += [Dep(f"r{t}", f"w{t}", 0, "WAR", t, ring=True) for t in "ab"]
    for budget in (64, 96):
        full = replace(AFTER, streams=(Stream("main", THREADS, budget=budget),))
        found = timing(full, deps)
        assert found is not None and pressure(full, found, "main") <= budget


def test_quotas_give_more_only_where_that_helps() -> None:
    assert quotas.alike(2, 128, 1) == quotas.alike(2, 128, 1, 200) == (40, 232)
    assert quotas.alike(2, 128, 1, 208) == (24, 240)
    assert quotas.alike(3, 128, 1) == quotas.alike(3, 128, 1, 200) == (32, 160)
    assert quotas.scarce(2, 128, 1, 208) and not quotas.scarce(2, 128, 1, 200)
    assert quotas.for_tiles(2, 128) == 220
