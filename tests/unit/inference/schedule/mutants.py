"""Schedules broken in one place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tile_core.inference.schedule.program import Schedule, Wait


def mutants(s: Schedule) -> Iterator[tuple[str, Schedule]]:
    """(what was done, schedule). Interlocks are hardware and left alone."""
    for step in s.steps():
        for w in step.waits:
            yield from _waits(s, step.op, w)
    for name, d in s.depth.items():
        if d > 1:
            yield f"shrink ring {name} to {d - 1}", replace(s, depth={**s.depth, name: d - 1})
    for name, t in s.tokens.items():
        if t.slots > 1:
            fewer = replace(t, slots=t.slots - 1)
            yield f"shrink token {name} to {t.slots - 1}", replace(s, tokens={**s.tokens, name: fewer})


def _waits(s: Schedule, op: str, w: Wait) -> Iterator[tuple[str, Schedule]]:
    kind = s.tokens[w.token].kind
    if kind == "interlock":
        return
    yield f"drop {op} <- {w.token}", changed(s, op, w)
    if kind != "barrier":
        yield f"weaken {op} <- {w.token}", changed(s, op, w, replace(w, distance=w.distance + 1))
    if kind == "signal" and w.distance:
        yield f"too early {op} <- {w.token}", changed(s, op, w, replace(w, distance=0))


def changed(s: Schedule, op: str, old: Wait, new: Wait | None = None) -> Schedule:
    """The schedule with another wait, or none, in the place of ``old``."""
    stream = s.body.op[op].stream
    steps = tuple(
        replace(x, waits=tuple(y for w in x.waits for y in ((new,) if w == old else (w,)) if y is not None))
        if x.op == op
        else x
        for x in s.streams[stream]
    )
    return replace(s, streams={**s.streams, stream: steps})
