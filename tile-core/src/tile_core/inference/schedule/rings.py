"""Slots beyond what a schedule needs: takes times, gives times whose rings have spare or pinned slots that are put to use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .bounds import needed_depth
from .model import SIGNAL, Body, Dep, Op, fits
from .relays import late
from .timing import Timing

SPARE = 2  # slots that a ring gets at most beyond those it needs


def deepened(body: Body, deps: Sequence[Dep], times: Timing) -> Timing:
    """Give memory that is left to rings that a signalling copy engine fills: its stream then runs ahead by itself.

    Copies that the threads of a block issue themselves run ahead only if they stand in an earlier stage: those of a ring with
    more slots than needed (a pinned one) are moved there.
    """
    ahead = _ahead(body, deps, replace(times, depth=_spare(body, times)))
    return late(body, deps, ahead)


def _spare(body: Body, times: Timing) -> dict[str, int]:
    by_signal = {
        name
        for o in body.ops
        if o.asynchronous and body.observed(o.name) == SIGNAL and not body.stream[o.stream].cooperative
        for name in o.writes
    }
    most = {
        s.name: min(s.most, times.depth[s.name] + SPARE)
        for s in body.storage
        if s.filled and s.name in by_signal
    }
    depth = dict(times.depth)
    while growing := [n for n in most if depth[n] < most[n]]:
        low = min(depth[n] for n in growing)
        more = {n: d + 1 if n in growing and d == low else d for n, d in depth.items()}
        if not fits(body, more):
            break
        depth = more
    return depth


def _ahead(body: Body, deps: Sequence[Dep], times: Timing) -> Timing:
    loose = replace(body, storage=tuple(replace(s, least=1) for s in body.storage))
    needed = needed_depth(loose, deps, times.interval, times.issue, times.start)
    issue, start = dict(times.issue), dict(times.start)
    for o in body.ops:
        spare = min((times.depth[n] - needed[n] for n in o.writes), default=0)
        if spare > 0 and _may_move(body, deps, o):
            issue[o.name] -= spare * times.interval
            start[o.name] -= spare * times.interval
    low = min(issue.values())
    return replace(
        times,
        issue={n: t - low for n, t in issue.items()},
        start={n: t - low for n, t in start.items()},
    )


def _may_move(body: Body, deps: Sequence[Dep], o: Op) -> bool:
    """Whether nothing but its ring holds an asynchronous copy of a cooperative stream back."""
    return (
        o.asynchronous
        and body.stream[o.stream].cooperative
        and all(body.tile[n].filled for n in o.writes)
        and all(d.ring and d.storage in o.writes for d in deps if d.v == o.name)
    )
