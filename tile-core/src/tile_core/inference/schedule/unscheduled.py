"""Pipelined loops in which nothing runs ahead: takes a graph and the schedules that were made, says why there is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...expr import Buffer
from ...graph import Graph, Loop
from ...program import Copy, For, Gemm, If
from .program import Schedule
from .region import LoopRegion


def unscheduled(graph: Graph, schedules: Mapping[str, Schedule]) -> Iterator[str]:
    """One sentence for each loop of several stages that copies into shared memory, and has no schedule."""
    for loop in graph.loops:
        s = loop.stmt
        if isinstance(s, For) and s.kind == "pipelined" and _wanted(s) > 1 and loop.name not in schedules:
            region = LoopRegion(graph, loop)
            if any(isinstance(n.stmt, Copy | Gemm) for n in region.nodes):
                yield f"{loop.name}: its {_wanted(s)} stages do not overlap, {_reason(region, loop)}"


def _wanted(s: For) -> int:
    """The stages that the user asks for."""
    return s.num_stages or 1 + max(s.stage, default=0)


def _reason(region: LoopRegion, loop: Loop) -> str:
    told = next(((u, v, e.buffer) for u, v, e in region.edges if not isinstance(e.buffer, Buffer)), None)
    if told is not None:
        u, v, var = told
        return f"since {var.name} goes from {u} to {v} as a scalar: only tiles wait for each other"
    if not region.closed:
        return "since an iteration may end it"
    apart = [n.loop for n in region.nodes if isinstance(n.stmt, Copy | Gemm) and n.loop != loop.name]
    if apart:
        what = "a branch" if isinstance(region.graph.loop(apart[0]).stmt, If) else "a loop"
        return f"since copies or products of it stand in {what} inside it"
    return "since none of its copies and products runs by itself on this target"
