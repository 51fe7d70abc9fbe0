"""How many blocks of a launch a core can hold at one time: from what inference says that a block takes."""

from __future__ import annotations

from collections.abc import Mapping

from ...expr import Buffer, Space
from ...inference.plan import TilePlan
from ...inference.schedule.program import Schedule
from ...inference.teams import FRONT
from ...program import Launch
from ...program.visit import statements, written_buffers

ADDRESSES = 64  # registers of a thread beside its tiles: addresses, counters, values on their way
MOST = 4  # more blocks only make each one's tiles smaller


def tile_bytes(plan: TilePlan, launch: Launch, schedules: Mapping[str, Schedule]) -> int:
    """Bytes of the user's tiles in shared memory, with all slots of rings."""
    depth: dict[Buffer, int] = {}
    for s in schedules.values():
        depth.update({t.buffer: s.depth[t.name] for t in s.body.storage if t.buffer is not None})
    own = {b.storage for s in statements(launch.body) for b in written_buffers(s)}
    return sum(
        depth.get(b, 1) * plan.layouts[b].footprint() * b.dtype.bits // 8
        for b in own
        if b.space is Space.SHARED and b in plan.layouts
    )


def resident(plan: TilePlan, launch: Launch, copying: int, shared: int) -> int:
    """Blocks of ``shared`` bytes that find room on a core; at least one. ``copying``: registers of threads beside the user's."""
    info = plan.info
    space, file = info.space("shared"), info.space("register")
    number = next((n for n, s in enumerate(plan.program.launches) if s is launch), 0)
    costs = [c for name, c in plan.costs.items() if not name.endswith(FRONT)]
    registers = (costs[number].registers if number < len(costs) else info.registers) + ADDRESSES
    by_shared = space.capacity // max(1, shared) if space is not None else MOST
    front = launch.front.threads if launch.front else 0
    taken = registers * (launch.thread_count + front) + copying
    by_registers = file.capacity // (4 * taken) if file is not None else MOST
    return max(1, min(MOST, by_shared, by_registers))


def spare(plan: TilePlan, rings: Mapping[Buffer, int], sizes: Mapping[Buffer, int], blocks: int) -> int:
    """Bytes of shared memory that no tile of the user and no ring takes, where so many blocks are on a core.

    ``rings``: slots by tile. ``sizes``: elements of a slot.
    """
    space = plan.info.space("shared")
    used = sum(n * rings[b] * b.dtype.bits // 8 for b, n in sizes.items())
    for b, layout in plan.layouts.items():
        if b.space is Space.SHARED and b not in rings:
            used += layout.footprint() * b.dtype.bits // 8
    return (space.capacity if space else 0) // blocks - used
