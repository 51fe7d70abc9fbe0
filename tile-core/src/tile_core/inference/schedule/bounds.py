"""Lower bounds of the interval between iterations, and how deep rings may be and must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .model import PIN, Body, Dep, fits, work

Edge = tuple[int, int, int, int]  # from, to, clocks, distance


def resource_bound(body: Body) -> tuple[int, str]:
    """Clocks of the busiest unit or stream in an iteration, and its name."""
    total = work(body.ops)
    name = max(total, key=lambda n: total[n])
    return max(1, total[name]), name


def recurrence_bound(body: Body, deps: Sequence[Dep], depth: Mapping[str, int], least: int = 1) -> int | None:
    """The smallest interval of at least ``least`` with no positive cycle of latency - interval * distance.

    None: there is none, as a cycle has distance 0 or less (a ring is too shallow).
    """
    number = {o.name: n for n, o in enumerate(body.ops)}
    edges = [(number[d.u], number[d.v], body.weight(d)[0], d.at(depth)) for d in deps if d.kind != PIN]
    found = earliest(len(number), edges, least)
    return None if found is None else found[0]


def earliest(count: int, edges: Sequence[Edge], least: int) -> tuple[int, list[int]] | None:
    """The same for edges between nodes 0 to ``count`` - 1, with the first clock of each node at that interval.

    A cycle that is too slow for an interval says how long the interval must be for it: that is tried next.
    """
    interval = least
    while True:
        value, cycle = relaxed(count, edges, interval)
        if not cycle:
            return interval, value
        clocks, distance = _needs(edges, cycle, interval)
        if distance <= 0:
            return None
        interval = -(-clocks // distance)


def relaxed(count: int, edges: Sequence[Edge], interval: int) -> tuple[list[int], list[int]]:
    """The first clock of each node, and the nodes of a cycle that needs more than ``interval``, each after the one before it.

    Where there is such a cycle the clocks are of no use; else the cycle is empty.
    """
    value, before = [0] * count, [-1] * count
    weights = [(u, v, w - interval * d) for u, v, w, d in edges]
    while True:
        changed = False
        for u, v, w in weights:
            at = value[u] + w
            if at > value[v]:
                value[v], before[v], changed = at, u, True
        if not changed:
            return value, []
        if cycle := _returns(
            before
        ):  # values that grow in a circle never stop (Tarjan, "Shortest paths", 1981)
            return value, cycle


def _returns(before: Sequence[int]) -> list[int]:
    """Nodes that come before themselves, each after the one before it; empty if there are none."""
    seen = [-1] * len(before)
    for n, at in enumerate(before):
        while at >= 0 and seen[at] < 0:
            seen[at] = n
            at = before[at]
        if at >= 0 and seen[at] == n:
            found = [at]
            while (at := before[at]) != found[0]:
                found.append(at)
            return found[::-1]
    return []


def _needs(edges: Sequence[Edge], cycle: Sequence[int], interval: int) -> tuple[int, int]:
    """Clocks and distance of a cycle, by the edges that are slowest at ``interval``."""
    steps = dict(zip(cycle, (*cycle[1:], cycle[0]), strict=True))
    slowest: dict[int, Edge] = {}
    for e in edges:
        if steps.get(e[0]) == e[1]:
            slowest[e[0]] = max(slowest.get(e[0], e), e, key=lambda e: e[2] - interval * e[3])
    return sum(e[2] for e in slowest.values()), sum(e[3] for e in slowest.values())


def critical_cycle(count: int, edges: Sequence[Edge], interval: int) -> frozenset[int]:
    """The nodes of a cycle that needs more than ``interval``; empty if there is none."""
    return frozenset(relaxed(count, edges, interval)[1])


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
