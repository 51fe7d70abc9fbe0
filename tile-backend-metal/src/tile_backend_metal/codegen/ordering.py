"""Which memory the barriers of a launch order: takes the launch, says whether global memory is among it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tile_core.expr import Buffer, Space
from tile_core.program import For, Launch, Stmt, Sync, While
from tile_core.program.visit import bodies, read_buffers, statements, written_buffers


def orders_global(launch: Launch) -> bool:
    """Whether a tensor that the lowered launch writes is touched by more than one of its steps.

    Otherwise no thread can meet what another one did there, and barriers need not wait for device memory. What stands in a
    loop with a barrier is more than one step.
    """
    touched: Counter[Buffer] = Counter()
    written: set[Buffer] = set()
    for s, times in _steps(launch.body, 1):
        reads = {b.storage for b in read_buffers(s) if b.space is Space.GLOBAL}
        writes = {b.storage for b in written_buffers(s) if b.space is Space.GLOBAL}
        for b in (*reads, *writes):
            touched[b] += times
        written |= writes
    return any(touched[b] > 1 for b in written)


def _steps(body: Iterable[Stmt], times: int) -> Iterable[tuple[Stmt, int]]:
    """Every statement, and whether it counts once or twice."""
    for s in body:
        repeated = isinstance(s, For | While) and any(isinstance(x, Sync) for x in statements(s.body))
        inside = 2 if repeated else times
        yield s, inside
        for inner in bodies(s):
            yield from _steps(inner, inside)
