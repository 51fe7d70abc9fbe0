"""Which nodes may run on an asynchronous engine: from a graph and the instructions chosen, by node name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ...expr import Buffer, Space, Var
from ...graph import Graph, Node
from ...hardware import Atom, Engine, TargetInfo
from ...program import Copy, For, Gemm
from ..model import GemmChoice
from .region import LoopRegion

COPY = "copy"
WARPS = {"warp": 1, "warpgroup": 4}  # subgroups that issue an instruction together


def asynchronous(info: TargetInfo) -> dict[str, Engine]:
    """Engines whose ops go on while their issuer does something else, until it asks or is told."""
    return {e.name: e for e in info.engines if e.observed in ("signal", "group") and not e.shared}


def engine_of(
    graph: Graph,
    info: TargetInfo,
    atoms: Mapping[str, GemmChoice],
    staged: Iterable[str] = (),
    copies: Iterable[str] | None = None,
) -> dict[str, str]:
    """The asynchronous engine of each node that can use one.

    ``staged``: operands that a node copies to or from a fragment of its own (``gemm0.c``), which it must wait for.
    ``copies``: nodes that the copy engine does; by default those of ``plain_copies``.
    """
    engines = asynchronous(info)
    if COPY not in engines:
        copies = ()
    elif copies is None:
        copies = plain_copies(graph)
    out = dict.fromkeys(copies, COPY)
    held = {name.partition(".")[0] for name in staged}
    for n in graph.nodes:
        choice = atoms.get(n.name)
        if isinstance(n.stmt, Gemm) and choice is not None and choice.atom is not None and n.name not in held:
            if _runs_alone(choice.atom, engines.get(choice.atom.engine), info):
                out[n.name] = choice.atom.engine
    return out


def _runs_alone(atom: Atom, engine: Engine | None, info: TargetInfo) -> bool:
    """Whether an instruction is one of the asynchronous unit: an older one of the same unit has other threads."""
    return engine is not None and atom.threads == WARPS.get(engine.issued_by, 0) * info.subgroup


def plain_copies(graph: Graph) -> Iterator[str]:
    """Copies from global memory to a whole shared tile in a pipelined loop, which is the first to write it or the only one."""
    writers: dict[Buffer, list[Node]] = {}
    for n in graph.nodes:
        for b in n.writes:
            writers.setdefault(b, []).append(n)
    regions: dict[str, LoopRegion] = {}
    for n in graph.nodes:
        loop = graph.loop(n.loop) if n.loop else None
        if loop is None or not isinstance(loop.stmt, For) or loop.stmt.kind != "pipelined":
            continue
        region = regions.setdefault(loop.name, LoopRegion(graph, loop))
        if _plain(n, region, writers) and alone(region, n.name):
            yield n.name


def alone(region: LoopRegion, copy: str) -> bool:
    """Whether a copy needs nothing that the threads compute in its loop: another stream has no part in that."""
    return not any(
        isinstance(e.buffer, Var) or e.buffer.space not in (Space.GLOBAL, Space.SHARED)
        for e in region.graph.edges
        if e.target == copy and e.source in region.owner and e.source not in region.everywhere
    )


def _plain(n: Node, region: LoopRegion, writers: Mapping[Buffer, list[Node]]) -> bool:
    s = n.stmt
    return (
        isinstance(s, Copy)
        and s.src.buffer.space is Space.GLOBAL
        and s.dst.buffer.space is Space.SHARED
        and s.dst.buffer.source is None
        and s.dst.shape == s.dst.buffer.shape
        and s.src.dtype == s.dst.dtype
        and writers[s.dst.buffer][0] is n
        and (len(writers[s.dst.buffer]) == 1 or region.renewed(s.dst.buffer))
        and not any(_same_launch(region.graph, n, w) for w in writers.get(s.src.buffer.storage, ()))
    )


def _same_launch(graph: Graph, a: Node, b: Node) -> bool:
    """Whether two nodes run in one launch: what an earlier one wrote is there when the next begins."""
    return _root(graph, a) == _root(graph, b)


def _root(graph: Graph, n: Node) -> str:
    name = n.loop
    while name and (parent := graph.loop(name).parent):
        name = parent
    return name or ""
