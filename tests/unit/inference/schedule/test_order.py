"""Happens-before by distances: chains, the first and last iterations, warps that drift, and cycles."""

from __future__ import annotations

from dataclasses import replace

import bodies as b
from making import schedule
from mutants import changed

from tile_core.inference.schedule.check import faults
from tile_core.inference.schedule.model import Body, Dep, Op, Storage, Stream
from tile_core.inference.schedule.order import Order
from tile_core.inference.schedule.program import Places, Schedule, Step, Token, Wait
from tile_core.inference.schedule.slots import order_of
from tile_core.inference.schedule.timing import Timing


def two_streams(cooperative: bool = False) -> Body:
    streams = (Stream("P"), Stream("C", 64, cooperative=cooperative))
    ops = (
        Op("load", "P", latency=10, writes=("T",)),
        Op("use", "C", latency=10),
        Op("other", "C", latency=10),
    )
    return Body("two", (), streams, (Storage("T", "shared", 64),), ops)


def test_program_order_is_a_gap_of_stages() -> None:
    places = Places({"u": (0, 0), "v": (2, 1), "w": (2, 0)})
    assert places.gap("u", "v") == -2  # two iterations younger ones have begun
    assert places.gap("v", "u") == 3
    assert places.gap("v", "w") == 1
    assert places.gap("w", "v") == 0


def test_a_wait_orders_and_its_absence_does_not() -> None:
    body = two_streams()
    order = Order(body, Places({"load": (0, 0), "use": (0, 0), "other": (0, 1)}))
    dep = Dep("load", "other", 0, "RAW", "T")
    assert order.way(dep, {}) is None
    wait = Wait("full", 0)
    order.add("use", wait, Token("full", "signal", ("load",)))
    assert order.way(dep, {}) == [("use", wait)]
    assert order.way(dep, {}, ("use", wait)) is None
    order.remove(("use", wait))
    assert order.way(dep, {}) is None


def test_a_chain_may_not_leave_the_iterations_that_exist() -> None:
    """``use`` of the next iteration waits for ``load``, which is no help to ``other`` in the last one."""
    body = two_streams()
    order = Order(body, Places({"load": (0, 0), "use": (0, 0), "other": (1, 1)}))
    order.add("use", Wait("full", 1), Token("full", "signal", ("load",)))
    assert order.way(Dep("load", "other", 0, "RAW", "T"), {}) is None
    assert order.way(Dep("load", "other", 1, "RAW", "T"), {}) is not None


def test_a_warp_does_not_speak_for_another() -> None:
    streams = (Stream("B", 64, cooperative=True),)
    ops = (Op("write", "B", latency=10, writes=("T",)), Op("read", "B", latency=10))
    dep = Dep("write", "read", 0, "RAW", "T")
    for space, kept in (("register", True), ("shared", False)):
        body = Body("one", (), streams, (Storage("T", space, 64, stream="B"),), ops)
        order = Order(body, Places({"write": (0, 0), "read": (0, 1)}))
        assert (order.way(dep, {"T": 1}) is not None) is kept


def test_older_instances_of_an_unordered_engine_are_not_implied() -> None:
    s = schedule(b.gemm_together())
    assert s is not None
    order = order_of(s)
    assert order.before(("loadA", 0, "c"), ("mma", 0, "b"), 0)
    assert order.before(("loadA", 0, "c"), ("mma", 0, "b"), 3)  # an older mma has waited for it
    late = changed(s, "mma", s.step("mma").waits[0], replace(s.step("mma").waits[0], distance=1))
    assert not order_of(late).before(("loadA", 0, "c"), ("mma", 0, "b"), 0)


def test_who_waits_for_itself_is_found() -> None:
    body = two_streams()
    tokens = {"full": Token("full", "signal", ("load",), 8), "empty": Token("empty", "signal", ("use",), 8)}
    times = Timing(10, {}, {})
    steps = {
        "P": (Step("load", 0, (Wait("empty", 0),)),),
        "C": (Step("use", 0, (Wait("full", 0),)), Step("other", 0)),
    }
    s = Schedule(steps, tokens, {"T": 1}, 10, {}, (), body, times)
    assert "some op waits for itself" in faults(s)
    ahead = {**steps, "P": (Step("load", 0, (Wait("empty", 1),)),)}
    assert not faults(replace(s, streams=ahead))


def test_counts_skip_what_is_issued_later() -> None:
    places = Places({"a": (0, 0), "b": (0, 1), "v": (0, 2)})
    queue = ["a", "b"]
    assert places.group_gap(queue, "a", "v", 0) == 0
    assert places.group_gap(queue, "a", "v", 1) == 0  # b(i) may be pending
    assert places.group_gap(queue, "b", "v", 1) == 1
    assert places.group_gap(queue, "a", "v", 2) == 1
    assert places.pending(queue, "a", "v", 0) == 1
    assert places.pending(queue, "b", "v", 2) == 4
