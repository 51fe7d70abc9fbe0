"""The tile plan: a complete program and, for every tile and op, what was decided about it for one target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..expr import Buffer
from ..graph import Graph
from ..layout.layout import Layout
from ..program import TileProgram
from ..target import Target, TargetInfo


@dataclass(frozen=True, slots=True)
class Placement:
    """Where and when an op of the graph runs: its engine, the role that issues it, iterations ahead of its use."""

    engine: str
    role: str
    stage: int = 0


@dataclass(frozen=True)
class TilePlan:
    """What a backend is given. Keys of ``loops``, ``atoms`` and ``placements`` are node names of ``graph``.

    ``layouts``: fragments and shared tiles. ``loops``: which thread runs which iteration of an elementwise loop or copy.
    ``atoms``: the matrix instruction of each gemm and how warps split it. ``moves``: values that change hands between
    threads, each with its price and reason. ``notes``: what inference did for the user, one sentence each.
    On a target that is not SIMT a tile is held by one thread of control, so only ``placements`` and ``notes`` are filled.
    """

    program: TileProgram
    info: TargetInfo
    graph: Graph
    layouts: Mapping[Buffer, Layout] = field(default_factory=dict[Buffer, Layout])
    loops: Mapping[str, Layout] = field(default_factory=dict[str, Layout])
    atoms: Mapping[str, Any] = field(default_factory=dict[str, Any])
    moves: tuple[Any, ...] = ()
    placements: Mapping[str, Placement] = field(default_factory=dict[str, Placement])
    notes: tuple[str, ...] = ()

    @property
    def target(self) -> Target:
        return self.info.target
