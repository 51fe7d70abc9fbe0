"""Which copies a target's copy engine can run by itself: a region and a shared tile's layout in, boxes or None out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

from ..expr import Buffer, Expr, Space, binary, const, loads
from ..expr.affine import linear
from ..graph import Graph, Node
from ..hardware import BulkRules, TargetInfo
from ..layout.layout import Axis, Layout
from ..layout.panels import row_major, span_tile
from ..program import Copy, Region
from ..program.visit import buffers, statements, written_buffers
from .schedule.engines import plain_copies
from .schedule.region import LoopRegion


@dataclass(frozen=True, slots=True)
class Piece:
    """One box of a copy: where it begins in the region, by dimension of the tensor, and in the tile, in elements."""

    shift: tuple[int, ...]
    at: int


@dataclass(frozen=True, slots=True)
class BoxCopy:
    """A copy between a tensor and a shared tile as boxes of the copy engine.

    ``start``: first element of the region, by dimension of the tensor; ``box``: extents of one box, alike. ``span``: bytes of
    the swizzle that the tile has, 0 for none. ``conditions`` must hold at the launch: what is not known when compiling.
    ``rows``: the dimension of the tensor that rows of the tile run along, None if there is one row.
    """

    tensor: Buffer
    start: tuple[Expr, ...]
    box: tuple[int, ...]
    span: int
    pieces: tuple[Piece, ...]
    conditions: tuple[Expr, ...] = ()
    rows: int | None = None

    @property
    def bytes(self) -> int:
        """What all boxes together write, tails included: the engine counts the zeros that it fills in."""
        return len(self.pieces) * prod(self.box) * self.tensor.dtype.bits // 8


def bulk_copies(graph: Graph, info: TargetInfo, layouts: Mapping[Buffer, Layout]) -> dict[str, BoxCopy]:
    """The copies into shared memory that may run ahead on the copy engine, by node name: plain ones that are boxes."""
    if info.bulk is None:
        return {}
    viewed = {b.storage for b in buffers(graph.program.body) if b.source is not None}
    out: dict[str, BoxCopy] = {}
    regions: dict[str, LoopRegion] = {}
    for name in plain_copies(graph):
        node = graph.by_name[name]
        s = node.stmt
        region = regions.setdefault(node.loop, LoopRegion(graph, graph.loop(node.loop)))
        if isinstance(s, Copy) and s.dst.buffer not in viewed and _passing(region, node):
            found = _loaded(s, layouts, info.bulk)
            if found is not None:
                out[name] = found
    return out


def lead_copies(graph: Graph, info: TargetInfo, layouts: Mapping[Buffer, Layout]) -> dict[str, BoxCopy]:
    """The copies outside of all loops that the copy engine may run, by node name: each alone fills a tile of its launch."""
    if info.bulk is None:
        return {}
    viewed = {b.storage for b in buffers(graph.program.body) if b.source is not None}
    out: dict[str, BoxCopy] = {}
    for launch in graph.program.launches:
        written = Counter(b.storage for s in statements(launch.body) for b in written_buffers(s))
        for s in launch.body:
            if not isinstance(s, Copy) or s.dst.buffer in viewed or written[s.dst.buffer] != 1:
                continue
            seen = [s.src.buffer, *(x.buffer for e in s.src.start for x in loads(e))]
            if any(b.space is not Space.GLOBAL or written[b.storage] for b in seen):
                continue
            found = _loaded(s, layouts, info.bulk)
            if found is not None and id(s) in graph.names:
                out[graph.names[id(s)]] = found
    return out


def _passing(region: LoopRegion, copy: Node) -> bool:
    """Whether what a copy brings is gone when its loop brings the next: only then can copies run ahead of its readers."""
    lasting = (b in region.outside or (region.carries(b) and not region.renewed(b)) for b in copy.writes)
    return not any(lasting)


def _loaded(s: Copy, layouts: Mapping[Buffer, Layout], rules: BulkRules) -> BoxCopy | None:
    tile, tensor = s.dst.buffer, s.src.buffer
    plain = tile.space is Space.SHARED and tensor.space is Space.GLOBAL and tensor.dtype == tile.dtype
    if not plain or tensor.base is not None or tensor.source is not None or not _all_of(s.dst):
        return None
    return boxes(s.src, layouts[tile], rules) if tile in layouts else None


def _all_of(r: Region) -> bool:
    return r.whole or all(
        getattr(a, "value", None) == 0 and e == d and not p
        for a, e, d, p in zip(r.start, r.extent, r.buffer.shape, r.point, strict=True)
    )


def part_of(region: Region, rows: int, columns: int, row: Expr | int = 0, column: Expr | int = 0) -> Region:
    """The box of a region of so many rows and columns that begins at (``row``, ``column``) of it."""
    kept = [n for n, p in enumerate(region.point) if not p][-2:]
    start, extent = list(region.start), list(region.extent)
    if len(kept) == 2:
        start[kept[0]] = binary("+", start[kept[0]], row)
        start[kept[1]] = binary("+", start[kept[1]], column)
        extent[kept[0]], extent[kept[1]] = rows, columns
    return replace(region, start=tuple(start), extent=tuple(extent), whole=False)


def boxes(region: Region, layout: Layout, rules: BulkRules) -> BoxCopy | None:
    """The boxes between ``region`` of a tensor and a shared tile of that layout; None if the engine cannot do it.

    Rules (CUDA driver API, cuTensorMapEncodeTiled; PTX ISA, cp.async.bulk.tensor: where a box lies in shared memory;
    measured: a box begins at a multiple of the alignment in its row).
    """
    tensor, bits = region.buffer, region.dtype.bits
    dims = [n for n, e in enumerate(region.extent) if not (isinstance(e, int) and e == 1)]
    if not all(isinstance(region.extent[n], int) for n in dims) or len(dims) > 2 or tensor.ndim > rules.rank:
        return None
    last = tensor.ndim - 1
    if last not in dims:  # a column, or a single element
        return None
    columns = _extent(region, last)
    row_dim = next((n for n in dims if n != last), None)
    rows = 1 if row_dim is None else _extent(region, row_dim)
    found = _panels(_flat(layout, rows, columns), rows, columns, bits, rules)
    conditions = _conditions(tensor, rules)
    if found is None or conditions is None or not _aligned(region.start[last], bits, rules):
        return None
    width, span = found
    height = next(h for h in range(min(rows, rules.largest), 0, -1) if rows % h == 0)
    box = [1] * tensor.ndim
    box[last] = width
    if row_dim is not None:
        box[row_dim] = height
    pieces = tuple(_pieces(tensor.ndim, row_dim, rows, columns, height, width))
    if any(p.at * bits % (8 * rules.place) for p in pieces):
        return None
    return BoxCopy(tensor, region.start, tuple(box), span, pieces, conditions, row_dim)


def _pieces(
    rank: int, row_dim: int | None, rows: int, columns: int, height: int, width: int
) -> Iterator[Piece]:
    for column in range(0, columns, width):
        for row in range(0, rows, height):
            shift = [0] * rank
            shift[-1] = column
            if row_dim is not None:
                shift[row_dim] = row
            yield Piece(tuple(shift), column * rows + row * width)


def _extent(region: Region, n: int) -> int:
    e = region.extent[n]
    assert isinstance(e, int)
    return e


def _flat(layout: Layout, rows: int, columns: int) -> Layout | None:
    """The layout with two dimensions; None if the tile has more elements than the region."""
    if prod(layout.shape) != rows * columns or layout.padded:
        return None
    return replace(layout, shape=(rows, columns), box=(rows, columns))


def _panels(
    layout: Layout | None, rows: int, columns: int, bits: int, rules: BulkRules
) -> tuple[int, int] | None:
    """(elements of a row of one box, span) of a layout that the engine writes."""
    if layout is None:
        return None
    for span in rules.spans:
        width = span * 8 // bits
        if columns % width == 0 and _alike(layout, span_tile((rows, columns), span, bits)):
            return width, span
    whole = columns * bits % (8 * rules.alignment) == 0 and columns <= rules.largest
    return (columns, 0) if whole and _alike(layout, row_major((rows, columns))) else None


def _alike(a: Layout, b: Layout) -> bool:
    """Whether two layouts of one shape put every element in one place: digits of extent 1 do not count."""

    def key(x: Layout) -> tuple[object, ...]:
        digits = tuple((i.extent, i.stride) for i in x.iters if i.extent > 1)
        return _fused(digits), x.swizzle, x.base(Axis.MEMORY), x.replicas

    return key(a) == key(b)


def _fused(digits: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    out: list[tuple[int, int]] = []
    for extent, stride in digits:
        if out and out[-1][1] == extent * stride:
            out[-1] = (out[-1][0] * extent, stride)
        else:
            out.append((extent, stride))
    return tuple(out)


def _conditions(tensor: Buffer, rules: BulkRules) -> tuple[Expr, ...] | None:
    """What must hold of extents and strides of a tensor; None if it never can."""
    *outer, inner = tensor.strides or tensor.row_major_strides()
    if inner != 1 or any(isinstance(d, int) and d < 1 for d in tensor.shape):
        return None
    out = [binary(">", d, 0) for d in tensor.shape if isinstance(d, Expr)]
    for stride in outer:
        size = tensor.dtype.bits // 8
        if isinstance(stride, int):
            if stride * size % rules.alignment or stride == 0:
                return None
            continue
        form = linear(stride)
        if any(n * size % rules.alignment for n in (form.constant, *form.terms.values())):
            out.append(binary("==", binary("%", stride, const(rules.alignment // size)), 0))
    return tuple(out)


def _aligned(start: Expr, bits: int, rules: BulkRules) -> bool:
    form = linear(start)
    return all(n * bits % (8 * rules.alignment) == 0 for n in (form.constant, *form.terms.values()))
