"""Which memory the barriers of a launch order: takes the launch, says whether global memory is among it."""

from __future__ import annotations

from collections import Counter

from tile_core.expr import Buffer, Space
from tile_core.program import Launch
from tile_core.program.visit import read_buffers, statements, written_buffers


def orders_global(launch: Launch) -> bool:
    """Whether a tensor that the lowered launch writes is touched by more than one of its steps.

    Otherwise no thread can meet what another one did there, and barriers need not wait for device memory.
    """
    touched: Counter[Buffer] = Counter()
    written: set[Buffer] = set()
    for s in statements(launch.body):
        reads = {b.storage for b in read_buffers(s) if b.space is Space.GLOBAL}
        writes = {b.storage for b in written_buffers(s) if b.space is Space.GLOBAL}
        touched.update(reads)
        touched.update(writes)
        written |= writes
    return any(touched[b] > 1 for b in written)
