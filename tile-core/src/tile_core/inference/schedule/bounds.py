"""Lower bounds of the interval between iterations, and how deep rings may be and must be."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from .model import Body, Dep, fits, work

Node = TypeVar("Node", bound=Hashable)


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
    return least_interval([o.name for o in body.ops], edges, least)


def least_interval(
    nodes: Sequence[Node], edges: Sequence[tuple[Node, Node, int, int]], least: int, most: int = 0
) -> int | None:
    """The same for edges (from, to, clocks, distance) between any nodes. ``most``: an interval that may be long enough."""
    number = {n: k for k, n in enumerate(nodes)}
    plain = [(number[u], number[v], w, d) for u, v, w, d in edges]
    if not positive_cycle(len(number), plain, least):
        return least
    low, high = least + 1, most
    if most <= least or positive_cycle(len(number), plain, most):
        high = low + sum(max(0, w) for _, _, w, _ in plain)
        if positive_cycle(len(number), plain, high):
            return None
    while low < high:
        mid = (low + high) // 2
        if positive_cycle(len(number), plain, mid):
            low = mid + 1
        else:
            high = mid
    return low


def positive_cycle(count: int, edges: Sequence[tuple[int, int, int, int]], interval: int) -> bool:
    """Whether a cycle needs more than ``interval``. Edges: (from, to, clocks, distance)."""
    value, before = [0] * count, [-1] * count
    weights = [(u, v, w - interval * d) for u, v, w, d in edges]
    for _ in range(count + 1):
        changed = False
        for u, v, w in weights:
            if value[u] + w > value[v]:
                value[v], before[v], changed = value[u] + w, u, True
        if not changed:
            return False
        if _returns(before):  # values that grow in a circle never stop (Tarjan, "Shortest paths", 1981)
            return True
    return True


def _returns(before: Sequence[int]) -> bool:
    """Whether some node comes before itself."""
    seen = [-1] * len(before)
    for n in range(len(before)):
        at = n
        while at >= 0 and seen[at] < 0:
            seen[at] = n
            at = before[at]
        if at >= 0 and seen[at] == n:
            return True
    return False


def critical_cycle(count: int, edges: Sequence[tuple[int, int, int, int]], interval: int) -> frozenset[int]:
    """The nodes of a cycle that needs more than ``interval``; empty if there is none. Edges: (from, to, clocks, distance)."""
    value, before = [0] * count, list(range(count))
    last = -1
    for _ in range(count + 1):
        last = -1
        for u, v, w, d in edges:
            if value[u] + w - interval * d > value[v]:
                value[v], before[v], last = value[u] + w - interval * d, u, v
        if last < 0:
            return frozenset()
    for _ in range(count):  # from where values still grow back into the cycle that makes them grow
        last = before[last]
    found = [last]
    while before[found[-1]] != last:
        found.append(before[found[-1]])
    return frozenset(found)


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
