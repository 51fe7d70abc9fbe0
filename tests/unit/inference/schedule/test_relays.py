"""Who tells other streams that products have read a tile: the end of all that adds to the same sums, where these are begun anew."""

from __future__ import annotations

import pytest
from bodies import HOPPER, ROOM, bulk, kept, matrix, ring

from tile_core.inference.schedule.check import faults
from tile_core.inference.schedule.dependences import dependences
from tile_core.inference.schedule.model import RELAY, Body, Stream
from tile_core.inference.schedule.modulo import timing
from tile_core.inference.schedule.relays import relayed
from tile_core.inference.schedule.tokens import synthesised


def body(fresh: bool) -> Body:
    """Two tiles, each multiplied into the same sums; ``fresh``: an iteration begins these anew."""
    size = 64 * 64 * 2
    first = matrix("first", "main", 64, 64, 64, ("left",) if fresh else ("left", "sums"), updates=("sums",))
    return Body(
        "two",
        HOPPER,
        (Stream("copy"), Stream("main", 128, cooperative=True)),
        (
            ring("left", "shared", size, 1, filled=True),
            ring("right", "shared", size, 1, filled=True),
            kept("sums", "register", 64 * 64 * 4, "main"),
        ),
        (
            bulk("load left", "copy", size, "left"),
            bulk("load right", "copy", size, "right"),
            first,
            matrix("second", "main", 64, 64, 64, ("right", "sums"), updates=("sums",)),
        ),
        ROOM,
    )


@pytest.mark.parametrize(("fresh", "told"), [(True, ["second.done"]), (False, ["first.done", "second.done"])])
def test_who_tells(fresh: bool, told: list[str]) -> None:
    full, _ = relayed(body(fresh), dependences(body(fresh)))
    assert sorted(o.name for o in full.ops if o.kind == RELAY) == told


@pytest.mark.parametrize("fresh", [True, False])
def test_every_dependence_is_kept(fresh: bool) -> None:
    deps = dependences(body(fresh))
    full, every = relayed(body(fresh), deps)
    times = timing(full, every)
    assert times is not None
    made = synthesised(full, deps, times)
    assert faults(made) == []
    heard = {made.tokens[w.token].producers for step in made.streams["copy"] for w in step.waits}
    assert heard == ({("second.done",)} if fresh else {("first.done",), ("second.done",)})
