"""Lower bounds of the interval between iterations, and how deep rings may be and must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .model import Body, Dep, fits, work

Edge = tuple[str, str, int, int]  # u, v, clocks from start to start, distance


def resource_bound(body: Body) -> tuple[int, str]:
    """Clocks of the busiest unit or stream in an iteration, and its name."""
    total = work(body.ops)
    name = max(total, key=lambda n: total[n])
    return max(1, total[name]), name


def recurrence_bound(body: Body, deps: Sequence[Dep], depth: Mapping[str, int], least: int = 1) -> int | None:
    """The smallest interval of at least ``least`` with no positive cycle of latency - interval * distance.

    None: there is none, as a cycle has distance 0 or less (a ring is too shallow).
    """
    edges = [(d.u, d.v, body.weight(d)[0], d.at(depth)) for d in deps]
    nodes = [o.name for o in body.ops]
    if not _positive_cycle(nodes, edges, least):
        return least
    low, high = least + 1, sum(o.span for o in body.ops) + (200 + body.signal) * len(body.ops)
    if _positive_cycle(nodes, edges, high):
        return None
    while low < high:
        mid = (low + high) // 2
        if _positive_cycle(nodes, edges, mid):
            low = mid + 1
        else:
            high = mid
    return low


def _positive_cycle(nodes: Sequence[str], edges: Sequence[Edge], interval: int) -> bool:
    value = dict.fromkeys(nodes, 0)
    weights = [(u, v, w - interval * d) for u, v, w, d in edges]
    for _ in range(len(nodes) + 1):
        changed = False
        for u, v, w in weights:
            if value[u] + w > value[v]:
                value[v], changed = value[u] + w, True
        if not changed:
            return False
    return True


def depth_caps(body: Body) -> dict[str, int]:
    """How deep each ring could be if every other one had as few slots as it may."""
    least = {s.name: s.least for s in body.storage}
    caps = dict(least)
    for s in body.storage:
        while not s.carried and caps[s.name] < s.most and fits(body, {**least, s.name: caps[s.name] + 1}):
            caps[s.name] += 1
    return caps


def needed_depth(
    body: Body, deps: Sequence[Dep], interval: int, issue: Mapping[str, int], start: Mapping[str, int]
) -> dict[str, int]:
    """The slots that these times need, by ring."""
    depth = {s.name: s.least for s in body.storage}
    for d in deps:
        if d.ring:
            weight, to_start = body.weight(d)
            at = start[d.v] if to_start else issue[d.v]
            need = -((at - start[d.u] - weight) // interval) - d.distance
            depth[d.storage] = max(depth[d.storage], need)
    return depth
