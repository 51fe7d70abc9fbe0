"""Blocks that share copies: whether two neighbours of a launch should each fetch half of what both read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from ..expr import Expr, Var, variables
from ..graph import Graph
from ..hardware import BulkRules, TargetInfo
from ..program import Bind, For, Gemm, If, Launch, Stmt
from ..program.visit import expressions, statements
from .bulk import BoxCopy
from .model import GemmChoice

# Sharing pays when fetching takes more than this part of the time that multiplying takes: measured on an H200, 128x256x64
# tiles (0.86 without, 0.57 with) gain 0.7 to 2 %; in a single wave the start of a pair costs more, so there it must be the bound.
WORTH, WORTH_IN_ONE_WAVE = 0.75, 1.0
CORE_ROWS = 8  # rows of a swizzle's pattern: a part of a box is a multiple of it


@dataclass(frozen=True, slots=True)
class Sharing:
    """``blocks`` neighbours along block number ``var`` work together; ``copies`` are those that they share."""

    var: Var
    blocks: int
    copies: frozenset[str]


def sharing(
    launch: Launch,
    graph: Graph,
    info: TargetInfo,
    bulk: Mapping[str, BoxCopy],
    atoms: Mapping[str, GemmChoice],
) -> Sharing | None:
    """How blocks of a launch should share copies, or None."""
    rules = info.bulk
    if rules is None or rules.sharing < 2:
        return None
    inside = {id(s) for s in statements(launch.body)}
    copies = {n.name: bulk[n.name] for n in graph.nodes if n.name in bulk and id(n.stmt) in inside}
    time = sum(
        2 * prod(_whole(n.stmt.mnk)) / atoms[n.name].atom.rate  # type: ignore[union-attr]
        for n in graph.nodes
        if isinstance(n.stmt, Gemm) and id(n.stmt) in inside and n.name in atoms and atoms[n.name].atom
    )
    rate = next((e.rate for e in info.engines if e.name == "copy"), 0)
    fetch = sum(c.bytes for c in copies.values()) / (rate or 1)
    if not copies or not time or fetch <= _worth(launch, info) * time:
        return None
    found = [
        s
        for v, extent in zip(launch.vars, launch.grid, strict=True)
        if (s := _along(v, extent, launch, copies, rules))
    ]
    return max(found, key=lambda s: sum(copies[c].bytes for c in s.copies), default=None)


def _whole(shape: Iterable[int | Expr]) -> tuple[int, ...]:
    return tuple(e if isinstance(e, int) else 1 for e in shape)


def _worth(launch: Launch, info: TargetInfo) -> float:
    known = [g for g in launch.grid if isinstance(g, int)]
    one_wave = len(known) == len(launch.grid) and prod(known) <= info.cores
    return WORTH_IN_ONE_WAVE if one_wave else WORTH


def _along(
    var: Var, extent: int | Expr, launch: Launch, copies: Mapping[str, BoxCopy], rules: BulkRules
) -> Sharing | None:
    """Sharing along one block number: pairs must come out even, and walk the same loops."""
    if not isinstance(extent, int) or extent % rules.sharing or _decides(var, launch.body):
        return None
    bound = {s.var: s.value for s in statements(launch.body) if isinstance(s, Bind)}
    shared = frozenset(
        name
        for name, c in copies.items()
        if not any(_depends(x, var, bound) for x in c.start) and _splits(c, rules.sharing)
    )
    return Sharing(var, rules.sharing, shared) if shared else None


def _depends(x: Expr, var: Var, bound: Mapping[Var, Expr]) -> bool:
    return any(v == var or (v in bound and _depends(bound[v], var, bound)) for v in variables(x))


def _decides(var: Var, body: Sequence[Stmt]) -> bool:
    """Whether loops or branches depend on ``var``."""
    bound = {s.var: s.value for s in statements(body) if isinstance(s, Bind)}
    return any(
        _depends(x, var, bound) for s in statements(body) if isinstance(s, For | If) for x in expressions(s)
    )


def _splits(copy: BoxCopy, parts: int) -> bool:
    return copy.rows is not None and copy.box[copy.rows] % (parts * CORE_ROWS) == 0
