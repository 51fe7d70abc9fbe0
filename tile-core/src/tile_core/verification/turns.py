"""The ring of a tile that is filled once for each tile of the grid, as a schedule whose iterations are the turns of a block.

What lowering does for such a tile (``lowering/simt/leads.py``) is this: fill turn t when turn t - slots has been read, read it
when it is filled. A block's copies of later turns wait only for turns whose own copies were started before, so that tiles ahead
and the rings of loops cannot wait for each other in a circle.
"""

from __future__ import annotations

from functools import lru_cache

from ..inference.schedule.check import checked
from ..inference.schedule.dependences import dependences
from ..inference.schedule.model import Body, Op, Read, Storage, Stream, Unit
from ..inference.schedule.modulo import timing
from ..inference.schedule.program import Schedule
from ..inference.schedule.relays import relayed
from ..inference.schedule.rings import deepened
from ..inference.schedule.tokens import synthesised
from .protocols import Protocol, prove_protocol

COPY, MAIN, TILE = "copy", "main", "tile"
MOST_SLOTS = 2  # that lowering gives such a tile


@lru_cache
def ring_of_turns(slots: int) -> Schedule:
    """The checked schedule of one such tile."""
    body = Body(
        "turns",
        (Unit(COPY, "signal", in_order=False),),
        (Stream(COPY), Stream(MAIN, threads=128, cooperative=True)),
        (Storage(TILE, "shared", 1, most=slots, least=slots, filled=True),),
        (
            Op("fill", COPY, COPY, busy=1, latency=1, issue=1, writes=(TILE,)),
            Op("read", MAIN, latency=1, reads=(Read(TILE),)),
        ),
        {"shared": slots},
    )
    deps = dependences(body)
    full, every = relayed(body, deps)
    times = timing(full, every)
    assert times is not None
    return checked(synthesised(full, deps, deepened(full, every, times)))


@lru_cache
def proved_turns(slots: int) -> Protocol:
    """The proof of such a ring; it is made once."""
    return prove_protocol(ring_of_turns(slots))
