"""From a body to its schedule, all stages in a row."""

from __future__ import annotations

from tile_core.inference.schedule.dependences import dependences
from tile_core.inference.schedule.model import Body
from tile_core.inference.schedule.modulo import timing
from tile_core.inference.schedule.program import Schedule
from tile_core.inference.schedule.relays import relayed
from tile_core.inference.schedule.rings import deepened
from tile_core.inference.schedule.tokens import synthesised


def schedule(body: Body) -> Schedule | None:
    """The schedule of a body, not checked; None if its rings are too shallow for any interval."""
    deps = dependences(body)
    full, every = relayed(body, deps)
    times = timing(full, every)
    return None if times is None else synthesised(full, deps, deepened(full, every, times))
