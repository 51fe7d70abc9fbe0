"""The tile plan: a complete program and, for every tile and op, what was decided about it for one target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..expr import Buffer
from ..graph import Graph
from ..hardware import Target, TargetInfo
from ..layout.convert import Conversion
from ..layout.layout import Layout
from ..program import TileProgram
from ..span import Span
from .adding import BoxAdd
from .bulk import BoxCopy
from .model import Cost, GemmChoice, how
from .schedule.program import Schedule
from .sharing import Sharing


@dataclass(frozen=True, slots=True)
class Placement:
    """Where and when an op of the graph runs: its engine, the role that issues it, iterations ahead of its use."""

    engine: str
    role: str
    stage: int = 0


@dataclass(frozen=True, slots=True)
class Move:
    """A value that changes hands: the op ``node`` wants ``buffer`` elsewhere than ``before`` keeps it.

    ``operand`` names a value without a buffer (a part of a tile that an op takes), else it is "". ``conversion`` says how
    the value gets there and what that costs; one that is free means that only the holders of an element write it.
    """

    buffer: Buffer | None
    node: str
    before: str
    conversion: Conversion
    span: Span | None = None
    before_span: Span | None = None
    operand: str = ""

    def __str__(self) -> str:
        name = self.operand if self.buffer is None else self.buffer.name
        return f"{name}: {self.node} disagrees with {self.before}: {self.conversion.reason} -> {how(self.conversion)}"


@dataclass(frozen=True)
class TilePlan:
    """What a backend is given. Keys of ``atoms`` and ``placements`` are node names of ``graph``.

    ``layouts``: fragments and shared tiles; views have the layout of their storage.
    ``loops``: which thread runs which iteration of an elementwise loop or copy, by node name. A reduction or gemm that
    cannot use a region as it is copies it to or from a fragment of its own: that copy is ``node.a.load``,
    ``node.c.store``, ``node.store`` and so on, or the node itself for the source of a reduction, and the layout of the
    fragment is in ``operands`` (``node.a``, ``node.source``, ``node.result``).
    ``windows``: loop of a node -> (start, count) where the loop was widened to a whole fragment and runs only there.
    ``atoms``: the matrix instruction of each gemm and how warps split it. ``moves``: values that change hands between
    threads, each with its price and reason. ``costs``: estimate of each launch. ``notes``: what inference did for the user,
    one sentence each. ``bulk``: the boxes of each copy in a loop that the copy engine runs by itself; ``leads``: of those
    outside of loops. ``adds``: the sums into tensors that it does.
    ``engines``: the asynchronous engine of each node that runs on one; ``schedules``: of each loop that has such nodes.
    ``sharing``: copies that blocks of a launch share, by the launch's number.
    On a target that is not SIMT a tile is held by one thread of control, so only ``placements`` and ``notes`` are filled.
    """

    program: TileProgram
    info: TargetInfo
    graph: Graph
    layouts: Mapping[Buffer, Layout] = field(default_factory=dict[Buffer, Layout])
    loops: Mapping[str, Layout] = field(default_factory=dict[str, Layout])
    atoms: Mapping[str, GemmChoice] = field(default_factory=dict[str, GemmChoice])
    moves: tuple[Move, ...] = ()
    placements: Mapping[str, Placement] = field(default_factory=dict[str, Placement])
    notes: tuple[str, ...] = ()
    operands: Mapping[str, Layout] = field(default_factory=dict[str, Layout])
    windows: Mapping[str, Mapping[int, tuple[int, int]]] = field(
        default_factory=dict[str, Mapping[int, "tuple[int, int]"]]
    )
    costs: Mapping[str, Cost] = field(default_factory=dict[str, Cost])
    bulk: Mapping[str, BoxCopy] = field(default_factory=dict[str, BoxCopy])
    leads: Mapping[str, BoxCopy] = field(default_factory=dict[str, BoxCopy])
    adds: Mapping[str, BoxAdd] = field(default_factory=dict[str, BoxAdd])
    sharing: Mapping[int, Sharing] = field(default_factory=dict[int, Sharing])
    engines: Mapping[str, str] = field(default_factory=dict[str, str])
    schedules: Mapping[str, Schedule] = field(default_factory=dict[str, Schedule])

    @property
    def target(self) -> Target:
        return self.info.target
