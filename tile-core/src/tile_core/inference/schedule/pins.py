"""What the user fixes of a schedule: from ``stage=`` and ``order=`` to what holds for each op, or an error at the user's line.

Kernel step k runs iteration k - stage of each op, in their order. So what an op of iteration i needs from another one of iteration
i - d must be in an earlier step, or before it in the same one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ...errors import KernelError
from ...expr import Buffer, Space
from ...graph import Edge, Graph
from ...program import Copy, For
from .model import PIN, Body, Dep, Op, Stream
from .region import LoopRegion
from .timing import Timing

STEP = "step"  # an op that stands for the begin of a kernel step
OPEN = -1  # a number of the user that leaves the op to inference
NEEDS = {
    "raw": "reads {tile}, which {u} writes",
    "war": "writes {tile}, which {u} reads",
    "waw": "writes {tile} after {u}",
}


@dataclass(frozen=True)
class Pins:
    """Stage and order of the ops that have one. ``slots``: as many as a ring may need for them."""

    stage: Mapping[str, int]
    order: Mapping[str, int]
    slots: int

    @staticmethod
    def of(region: LoopRegion) -> Pins | None:
        """The pins of a loop; None if it has none.

        Raises:
            KernelError: they are not one number for each step of the loop's body, or two ops have one place.
        """
        loop, ops = region.stmt, list(region.ops)
        if not loop.stage:
            return None
        if len(loop.stage) != len(ops):
            raise _other_count(region, ops)
        stage = {op: n for op, n in zip(ops, loop.stage, strict=True) if n > OPEN}
        order = {op: n for op, n in zip(ops, loop.order, strict=True) if n > OPEN and op in stage}
        for u, v in pairwise(sorted(order, key=lambda op: order[op])):
            if order[u] == order[v]:
                raise KernelError(
                    f"{u} and {v} have one place, {order[u]}, in order=",
                    region.statement(v).span,
                    help="number the steps of the body from 0 in the order in which they are to be started",
                )
        return Pins(stage, order, 1 + max(stage.values(), default=0))


def check_pins(graph: Graph) -> None:
    """Look at all loops with pins, whatever their target does with them.

    Raises:
        KernelError: pins that are no schedule: an op would run before what it needs.
    """
    for loop in graph.loops:
        if isinstance(loop.stmt, For) and loop.stmt.stage:
            region = LoopRegion(graph, loop)
            pins = Pins.of(region)
            if pins is not None:
                _check(region, pins)


def _check(region: LoopRegion, pins: Pins) -> None:
    """Earliest stages of all ops by the pinned ones: none of these may be too early for it."""
    low, root = dict(pins.stage), {op: op for op in pins.stage}
    edges = [(u, v, e, _distance(region, e, pins)) for u, v, e in region.edges]
    for _ in region.ops:
        for u, v, e, d in edges:
            if u not in low:
                continue
            if v in pins.stage:
                if _too_early(u, v, low[u] - d, pins):
                    raise _contradiction(region, pins, (root[u], u, v), e, d)
            elif low[u] - d > low.get(v, OPEN):
                low[v], root[v] = low[u] - d, root[u]


def _distance(region: LoopRegion, e: Edge, pins: Pins) -> int:
    """Iterations between the two ends of an edge: of a ring, that its slots allow."""
    if not e.carried:
        return 0
    ring = e.kind != "raw" and isinstance(e.buffer, Buffer) and _filled(region, e.buffer)
    return max(1, region.stmt.num_stages or pins.slots) if ring else 1


def _filled(region: LoopRegion, b: Buffer) -> bool:
    """Whether a tile is one that copies from global memory fill anew in each iteration: it may have several slots."""
    writers = [n.stmt for n in region.nodes if b in n.writes]
    copied = all(isinstance(s, Copy) and s.src.buffer.space is Space.GLOBAL for s in writers)
    return b.space is Space.SHARED and copied and not region.carries(b)


def _too_early(u: str, v: str, stage: int, pins: Pins) -> bool:
    """Whether ``v`` stands before a ``u`` that runs in ``stage`` when ``v`` does its iteration."""
    if stage != pins.stage[v] or u == v:
        return stage > pins.stage[v]
    return u in pins.order and v in pins.order and pins.order[u] > pins.order[v]


def _contradiction(region: LoopRegion, pins: Pins, ops: tuple[str, str, str], e: Edge, d: int) -> KernelError:
    root, u, v = ops
    assert isinstance(e.buffer, Buffer)
    needs = NEEDS[e.kind].format(tile=e.buffer.name, u=u)
    by = (
        f"{u}, which comes after {root} in stage {pins.stage[root]}"
        if u != root
        else f"{u} in stage {pins.stage[u]}"
    )
    ahead = f" {d} iteration{'s' if d > 1 else ''} before" if d else ""
    ahead += f" (num_stages={region.stmt.num_stages})" if d > 1 else ""
    same = u == root and pins.stage[u] - d == pins.stage[v]
    least = max(pins.stage[root] - d, 0)
    return KernelError(
        f"{v} in stage {pins.stage[v]} runs before what it needs from {by}",
        region.statement(v).span,
        why=f"{v} {needs}{ahead}; a step of the loop runs iteration k - stage of each op",
        help=(
            f"let order= put {u} before {v}, or give {v} a later stage"
            if same
            else f"give {v} stage {least} or later, or {root} stage {pins.stage[v] + d} or earlier"
        ),
    )


def _other_count(region: LoopRegion, ops: Sequence[str]) -> KernelError:
    lines = [region.statement(op).span for op in ops]
    named = (f"{op} (line {s.line})" if s else op for op, s in zip(ops, lines, strict=True))
    return KernelError(
        f"stage= and order= have {len(region.stmt.stage)} numbers, the loop's body has {len(ops)} steps",
        region.stmt.span,
        why=f"the steps are {', '.join(named)}",
        help=f"give one number for each of them, {OPEN} where it is to be inferred",
    )


def anchored(body: Body, deps: Sequence[Dep], pins: Pins) -> tuple[Body, tuple[Dep, ...]]:
    """The body with an op for the begin of a kernel step, and what the pins demand as dependences on it."""
    step = replace(body, ops=(*body.ops, Op(STEP, STEP)), streams=(*body.streams, Stream(STEP)))
    return step, (*deps, *_demanded(body, pins))


def _demanded(body: Body, pins: Pins) -> Iterator[Dep]:
    for op, stage in pins.stage.items():
        yield Dep(STEP, op, -stage, PIN, "", queued=True)
        yield Dep(op, STEP, stage + 1, PIN, "", queued=True)
    for stream in body.streams:
        mine = [o.name for o in body.ops if o.stream == stream.name and o.name in pins.order]
        order = sorted(mine, key=lambda op: pins.order[op])
        for x, y in pairwise(order):
            yield Dep(x, y, pins.stage[x] - pins.stage[y], PIN, "", queued=True)


def freed(times: Timing) -> Timing:
    """The times without the op for the begin of a step, which is clock 0 of them."""
    origin = times.issue[STEP]
    issue, start = ({n: t - origin for n, t in at.items() if n != STEP} for at in (times.issue, times.start))
    return replace(times, issue=issue, start=start, origin=0)
