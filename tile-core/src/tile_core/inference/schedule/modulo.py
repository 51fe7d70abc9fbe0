"""The search for times: from a body and its dependences to the shortest interval found between iterations.

Attempts give orders; each order is then put as close as it can be. The search is the same on every run.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from .attempt import Attempt, Tables, settled
from .bounds import critical_cycle, depth_caps, recurrence_bound, resource_bound
from .compact import compacted, in_program_order, soonest
from .exchange import exchanged
from .model import PIN, Body, Dep, Storage, fits
from .patience import patient
from .pressure import excess
from .timing import Timing
from .undisturbed import moved

PLAIN, CYCLE = False, True  # by importance alone; or ops of the slowest cycle before all others
ROUNDS = (  # interval over its bound; how much importance is shaken in each attempt, and what comes first
    (1, ((0, CYCLE), (0.6, PLAIN))),
    (1.06, ((0, CYCLE), (0.6, CYCLE), (1, PLAIN))),
    (1.2, ((0, CYCLE), (0.6, PLAIN), (1, CYCLE))),
    (1.5, ((0, PLAIN), (1, CYCLE), (0.6, PLAIN), (0.6, CYCLE))),
)
GROWTHS = (1, 1.06, 1.2, 1.5, 2, 4)  # interval over its bound, where the user has fixed stages
STARTS = 2  # orders that are made better
LONGER = 1.08  # an interval that is so much longer is worth a thing that is nowhere promised
SLOWER = 1.25  # an interval that is so much longer costs more than products one after the other
NEARER = (
    (0.6, CYCLE),
    (0.6, PLAIN),
    (1, CYCLE),
)  # halfway between the bound and the best interval found so far


def timing(body: Body, deps: Sequence[Dep], seed: int = 0) -> Timing | None:
    """The shortest interval found, with rings that fit into memory. None: rings are too shallow for any interval."""
    rng = random.Random(seed)
    resource, _ = resource_bound(body)
    caps = depth_caps(body)
    pinned = any(d.kind == PIN for d in deps)
    while (bound := recurrence_bound(body, deps, caps, resource)) is not None:
        tables = Tables(body, deps, dict(caps))
        found = _pinned(tables, bound) if pinned else _search(tables, bound, rng)
        if found is None:
            return None
        if fits(body, found.depth):
            return replace(polished(tables, found, bound), bound=bound)
        largest = _largest(body, found.depth)
        if largest is None:
            return None
        # this ring alone takes too much: it gets less next time
        caps[largest.name] = min(caps[largest.name], found.depth[largest.name] - 1)
    return None


def polished(tables: Tables, times: Timing, bound: int) -> Timing:
    """The times as a compiler of the target wants them: products undisturbed, idle clocks put to use."""
    return _patient(tables, _undisturbed(tables, times, bound))


def _exchanged(tables: Tables, times: Timing, bound: int) -> Timing:
    """The times in a better order, if rings still fit."""
    out = settled(tables, exchanged(tables.links, times, bound))
    return out if _as_good(tables.body, out, times) else times


def _undisturbed(tables: Tables, times: Timing, bound: int) -> Timing:
    """The times with the writes of products' registers in front of them, unless that takes much longer by these costs.

    Writes behind a wait stay where they are if moving them takes longer.
    """
    out = _written_early(tables, times, bound, True)
    if out is None or out.interval > LONGER * times.interval:
        some = _written_early(tables, times, bound, False)
        if some is not None and (out is None or out.interval > LONGER * some.interval):
            return some
    return times if out is None else out


def _written_early(tables: Tables, times: Timing, bound: int, behind_waits: bool) -> Timing | None:
    """The times with such writes in front; None if that takes much longer, or more registers."""
    order = moved(tables.body, tuple(tables.deps), times, behind_waits)
    if order is None:
        return times
    found = compacted(tables.links, order, bound)
    if found is None or found.interval > SLOWER * times.interval:
        return None
    out = settled(tables, found)
    return out if _as_good(tables.body, out, times) else None


def _as_good(body: Body, new: Timing, old: Timing) -> bool:
    """Whether rings fit, and tiles take no more registers beyond what there is than before."""
    return fits(body, new.depth) and excess(body, new) <= excess(body, old)


def _patient(tables: Tables, times: Timing) -> Timing:
    """The times with idle clocks put to use, if rings still fit."""
    out = settled(tables, patient(tables.links, times))
    return out if _as_good(tables.body, out, times) else times


def _search(tables: Tables, bound: int, rng: random.Random) -> Timing | None:
    """The best of some orders, each after the exchanges that help it. One that reaches the bound ends the search."""
    found: list[Timing] = []
    edges = [(u, v, w, d) for u, v, w, _, d in tables.edges]
    critical = critical_cycle(len(tables.names), edges, bound - 1)

    def attempt(interval: int, noise: float, cycle: bool) -> bool:
        a = Attempt(tables, interval)
        if a.run(rng, noise, critical if cycle else frozenset()):
            found.extend(filter(None, (_closest(tables, a.times(), bound),)))
        last = found[-1] if found else None
        fine = last is not None and fits(tables.body, last.depth) and not excess(tables.body, last)
        return fine and last is not None and last.interval == bound

    for growth, attempts in ROUNDS:
        if any(attempt(int(bound * growth), noise, cycle) for noise, cycle in attempts):
            return found[-1]
        if found:
            break
    found += filter(None, (_closest(tables, in_program_order(tables.body), bound),))
    for noise, cycle in NEARER:
        best = min((t.interval for t in found), default=0)
        if best and attempt((bound + best) // 2, noise, cycle):
            break
    starts = sorted(found, key=lambda t: (excess(tables.body, t), t.interval))[:STARTS]
    better = (_exchanged(tables, t, bound) for t in starts)
    return min((*found, *better), key=lambda t: _key(tables.body, t), default=None)


def _pinned(tables: Tables, bound: int) -> Timing | None:
    """The best of orders in which each op runs as soon as it can and as the user wants, at intervals that are growing."""
    found = list[Timing]()
    for growth in GROWTHS:
        times = soonest(tables.links, int(bound * growth))
        close = None if times is None else compacted(tables.links, times, bound)
        if close is not None:
            found.append(settled(tables, close))
    better = (_exchanged(tables, t, bound) for t in sorted(found, key=lambda t: t.interval)[:STARTS])
    return min((*found, *better), key=lambda t: _key(tables.body, t), default=None)


def _closest(tables: Tables, times: Timing, bound: int) -> Timing | None:
    """An order in its shortest interval."""
    if times.interval > bound:
        found = compacted(tables.links, times, bound)
        if found is None:
            return None
        times = found
    return settled(tables, times)


def _key(body: Body, t: Timing) -> tuple[bool, int, int, int]:
    """Less for what fits into memory, then into registers, then for the shorter interval, then for fewer iterations in flight."""
    return not fits(body, t.depth), excess(body, t), t.interval, t.flight


def _largest(body: Body, depth: Mapping[str, int]) -> Storage | None:
    """The largest ring of a space that overflows, if one can shrink."""

    def tight(s: Storage) -> bool:
        return not fits(body, {n: depth[n] if body.tile[n].space == s.space else 1 for n in depth})

    rings = [s for s in body.storage if not s.carried and depth[s.name] > s.least and tight(s)]
    return max(rings, key=lambda s: s.bytes * depth[s.name], default=None)
