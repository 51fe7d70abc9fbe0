"""Which engine runs each node, and who issues it: the plain choice, everything in program order and in one stage."""

from __future__ import annotations

from collections.abc import Mapping

from ..graph import Graph, Node
from ..hardware import TargetInfo
from .model import GemmChoice
from .plan import Placement

EVERYBODY = "block"  # all threads of the block issue it together


def placements(
    graph: Graph, info: TargetInfo, atoms: Mapping[str, GemmChoice] | None = None
) -> dict[str, Placement]:
    """A placement of every node. ``atoms``: the instructions chosen for gemms (a target without threads: its first)."""
    return {n.name: Placement(_engine(n, info, atoms or {}), EVERYBODY) for n in graph.nodes}


def _engine(node: Node, info: TargetInfo, atoms: Mapping[str, GemmChoice]) -> str:
    names = [e.name for e in info.engines]
    if node.kind == "gemm":
        choice = atoms.get(node.name)
        atom = choice.atom if choice is not None else next(iter(info.atoms), None)
        if atom is not None and atom.engine in names:
            return atom.engine
    plain = [e.name for e in info.engines if e.observed == "synchronous"]
    return (plain or names or [""])[0]
