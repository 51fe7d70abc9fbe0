"""Which sums of tiles into tensors a target's copy engine does: threads stage their accumulators, the engine adds boxes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..expr import Buffer, Space
from ..graph import Graph, Node
from ..hardware import BulkRules, TargetInfo
from ..layout.layout import Layout
from ..layout.panels import span_tile
from ..program import AtomicTile, Launch
from ..program.visit import read_buffers, statements, written_buffers
from .bulk import boxes, part_of
from .model import GemmChoice


@dataclass(frozen=True, slots=True)
class BoxAdd:
    """A sum of an accumulator into a tensor. Each group of threads holds ``rows`` by ``columns`` of it, and adds them in pieces.

    ``choice``: how the accumulator was made. ``piece``: layout of the staging tile of one piece.
    """

    choice: GemmChoice
    piece: Layout

    @property
    def rows(self) -> int:
        return self.choice.c.shape[0] // self.choice.warps[0]

    @property
    def columns(self) -> int:
        return self.choice.c.shape[1] // self.choice.warps[1]

    @property
    def groups(self) -> int:
        return self.choice.warps[0] * self.choice.warps[1]

    @property
    def pieces(self) -> int:
        return self.columns // self.piece.shape[1]

    @property
    def elements(self) -> int:
        """Of the staging tiles of all groups."""
        return self.groups * self.rows * self.columns


def box_adds(
    graph: Graph, info: TargetInfo, layouts: Mapping[Buffer, Layout], atoms: Mapping[str, GemmChoice]
) -> dict[str, BoxAdd]:
    """The atomic sums that the copy engine may do, by node name: of whole accumulators, into a tensor that nothing else in their
    launch sees.
    """
    rules = info.bulk
    if rules is None:
        return {}
    out: dict[str, BoxAdd] = {}
    for launch, n in _sums(graph):
        assert isinstance(n.stmt, AtomicTile)
        choice = _accumulator(n.stmt, layouts, atoms, rules)
        if choice is not None and choice.warps[0] * choice.warps[1] * rules.group == launch.thread_count:
            piece = _piece(n.stmt, choice, rules)
            if piece is not None and _only_user(launch, n.stmt):
                out[n.name] = BoxAdd(choice, piece)
    return out


def staging(graph: Graph, adds: Mapping[str, BoxAdd], launch: Launch) -> int:
    """Bytes of shared memory that the sums of a launch take."""
    mine = {graph.names.get(id(s)) for s in statements(launch.body)}
    return sum(
        a.elements * s.dst.dtype.bits // 8
        for name, a in adds.items()
        if name in mine and isinstance(s := graph.by_name[name].stmt, AtomicTile)
    )


def _sums(graph: Graph) -> Iterator[tuple[Launch, Node]]:
    for launch in graph.program.launches:
        inside = {id(s) for s in statements(launch.body)}
        for n in graph.nodes:
            if isinstance(n.stmt, AtomicTile) and n.stmt.op == "add" and id(n.stmt) in inside:
                yield launch, n


def _accumulator(
    s: AtomicTile, layouts: Mapping[Buffer, Layout], atoms: Mapping[str, GemmChoice], rules: BulkRules
) -> GemmChoice | None:
    """How the sum's fragment was made, if it is all of a result of the matrix engine."""
    fragment, tensor = s.value.buffer, s.dst.buffer
    plain = fragment.space is Space.FRAGMENT and tensor.space is Space.GLOBAL and s.value.whole
    if not plain or tensor.base is not None or tensor.source is not None or s.order != "relaxed":
        return None
    if fragment.dtype != tensor.dtype or tensor.dtype.name not in rules.adds:
        return None
    layout = layouts.get(fragment)
    if layout is None or layout.padded:
        return None
    for choice in atoms.values():
        if choice.atom is not None and choice.atom.threads == rules.group and choice.c == layout:
            return choice
    return None


def _piece(s: AtomicTile, choice: GemmChoice, rules: BulkRules) -> Layout | None:
    """The layout of a staging tile of which the engine adds one box."""
    rows, columns = (n // w for n, w in zip(choice.c.shape, choice.warps, strict=True))
    bits = s.dst.dtype.bits
    for span in rules.spans:
        width = span * 8 // bits
        if columns % width or rows > rules.largest:
            continue
        layout = span_tile((rows, width), span, bits)
        found = boxes(part_of(s.dst, rows, width), layout, rules)
        return layout if found is not None and len(found.pieces) == 1 else None
    return None


def _only_user(launch: Launch, sum: AtomicTile) -> bool:
    """Whether nothing else in a launch sees a tensor: the engine's sums come in no order with what threads do."""
    tensor = sum.dst.buffer.storage
    return all(
        s is sum
        for s in statements(launch.body)
        if any(b.storage is tensor for b in (*read_buffers(s), *written_buffers(s)))
    )
