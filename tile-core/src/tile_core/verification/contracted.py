"""A schedule with fewer steps whose proof is one of the whole: steps that only follow each other become one.

Of two synchronous ops next to each other, in one stage of one stream, the second of which waits for nothing and the first of which
tells nobody, nothing can come between that matters: what holds when the second begins held when the first began, and nobody sees
the end of the first before that of the second. What is shown of both as one op is more than what has to be shown.
"""

from __future__ import annotations

from dataclasses import replace

from ..inference.schedule.dependences import unique
from ..inference.schedule.model import WORK, Dep
from ..inference.schedule.program import Schedule, Step


def contracted(schedule: Schedule) -> Schedule:
    """The schedule with such steps put together; each has the name of its last op, which may be waited for."""
    names: dict[str, str] = {}
    streams = {s: _stream(schedule, steps, names) for s, steps in schedule.streams.items()}
    deps = unique(
        d for d in (_renamed(d, names) for d in schedule.deps) if d.u != d.v or d.at(schedule.depth)
    )
    ops = tuple(o for o in schedule.body.ops if o.name not in names)
    body = replace(schedule.body, ops=ops)
    return replace(schedule, streams=streams, deps=tuple(deps), body=body)


def _stream(schedule: Schedule, steps: tuple[Step, ...], names: dict[str, str]) -> tuple[Step, ...]:
    telling = {u for t in schedule.tokens.values() for u in t.producers}
    out: list[Step] = []
    for s in steps:
        before = out[-1] if out else None
        if before is not None and _joined(schedule, before, s) and before.op not in telling:
            names |= {n: s.op for n, now in names.items() if now == before.op} | {before.op: s.op}
            out[-1] = replace(s, waits=before.waits)
        else:
            out.append(s)
    return tuple(out)


def _joined(schedule: Schedule, a: Step, b: Step) -> bool:
    x, y = schedule.ops[a.op], schedule.ops[b.op]
    plain = not x.asynchronous and not y.asynchronous and x.kind == y.kind == WORK
    return plain and a.stage == b.stage and not b.waits


def _renamed(d: Dep, names: dict[str, str]) -> Dep:
    return replace(d, u=names.get(d.u, d.u), v=names.get(d.v, d.v))
