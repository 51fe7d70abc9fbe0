"""The solver's question once more, in another form: each clock is stage * interval + offset, and offsets do not overlap.

Nothing bounds the stages here, so ``unsat`` holds for all times. What products disturb is no part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import z3 as z3_  # pyright: ignore[reportMissingTypeStubs]

from tile_core.inference.schedule.model import Body, Dep, memory

z3: Any = z3_


def verdict(body: Body, deps: Sequence[Dep], interval: int) -> str:
    """Whether there are times with this interval. Only for bodies whose rings all fit with their most slots."""
    assert all(
        memory(body, {s.name: s.most for s in body.storage}).get(k, 0) <= n for k, n in body.capacity.items()
    )
    solver = z3.SolverFor("QF_LIA", ctx=z3.Context())
    integer = lambda name: z3.Int(name, solver.ctx)
    issue, start, offset = dict[str, Any](), dict[str, Any](), dict[Any, Any]()
    for o in body.ops:
        for at, name in ((issue, f"t {o.name}"), (start, f"s {o.name}")):
            if at is start and not o.asynchronous:
                start[o.name] = issue[o.name]
                continue
            rest = integer(f"{name} offset")
            solver.add(rest >= 0, rest < interval)
            at[o.name] = interval * integer(f"{name} stage") + rest
            offset[at[o.name]] = rest
        solver.add(start[o.name] >= issue[o.name])
    solver.add(start[body.ops[0].name] == 0)
    most = {s.name: 1 if s.carried else s.most for s in body.storage}
    for d in deps:
        clocks, to_start = body.weight(d)
        solver.add((start if to_start else issue)[d.v] + interval * d.at(most) >= start[d.u] + clocks)

    def apart(a: Any, la: int, b: Any, lb: int) -> None:
        if la and lb:
            one = z3.And(b - a >= la, a + interval - b >= lb)
            solver.add(z3.Or(one, z3.And(a - b >= lb, b + interval - a >= la)))

    for u, v in combinations(body.ops, 2):
        if u.unit and u.unit == v.unit:
            apart(offset[start[u.name]], u.busy, offset[start[v.name]], v.busy)
        if u.stream == v.stream:
            apart(offset[issue[u.name]], u.hold, offset[issue[v.name]], v.hold)
        if body.fifo(u.name, v.name):
            lap = integer(f"lap {u.name} {v.name}")
            for at in (issue, start):
                gap = at[v.name] - at[u.name] - interval * lap
                solver.add(gap >= 0, gap < interval)
    return str(solver.check())
