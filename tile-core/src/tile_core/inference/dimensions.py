"""Which dimensions of tiles and tensors are one and the same: classes, found from the ops of a program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..errors import KernelError
from ..expr import Buffer, Expr, Space, Var, loads, shape_text, text
from ..expr.affine import same
from ..program import (
    AtomicTile,
    Copy,
    Extent,
    Gemm,
    Parallel,
    Reduce,
    Region,
    Scan,
    Stmt,
    Store,
    Transpose,
)
from ..program.visit import expressions, statements
from ..span import Span

Key = tuple[Buffer, int]  # a dimension of a buffer


@dataclass(frozen=True)
class Transfer:
    """A copy between a whole tensor and a whole tile. ``lead``: dimensions that the tensor has in front of the tile's."""

    stmt: Copy | AtomicTile
    tensor: Region
    tile: Region
    stores: bool

    @property
    def lead(self) -> int:
        return self.tensor.buffer.ndim - self.tile.buffer.ndim

    def pairs(self) -> list[tuple[int, int]]:
        """(dimension of the tensor, dimension of the tile), aligned at the last."""
        return [(self.lead + n, n) for n in range(self.tile.buffer.ndim)]


@dataclass(frozen=True)
class Dimension:
    """A class of dimensions: its size in tensors, its size in tiles, and where it was first seen."""

    name: str
    extent: Extent
    tile: int
    stored: bool
    span: Span | None

    @property
    def tiled(self) -> bool:
        return not same(self.extent, self.tile)

    def __str__(self) -> str:
        size = text(self.extent)
        name = f"{self.name} = " if self.name != size else ""
        return f"{name}{size} in tiles of {self.tile}"


@dataclass
class Classes:
    """Union-find over dimensions."""

    parent: dict[Key, Key] = field(default_factory=dict[Key, Key])

    def find(self, key: Key) -> Key:
        self.parent.setdefault(key, key)
        while self.parent[key] != key:
            self.parent[key] = self.parent[self.parent[key]]
            key = self.parent[key]
        return key

    def join(self, a: Key, b: Key) -> None:
        first, second = self.find(a), self.find(b)
        if first != second:
            self.parent[second] = first


def transfers(body: Iterable[Stmt]) -> list[Transfer]:
    """Copies and atomic updates between whole tensors and whole tiles.

    Raises:
        KernelError: a tile has more dimensions than the tensor, or a tensor is accessed in another way.
    """
    out: list[Transfer] = []
    for s in statements(body):
        match s:
            case Copy():
                sides = (s.src, s.dst)
            case AtomicTile():
                sides = (s.value, s.dst)
            case _:
                _no_tensor(s)
                continue
        tensors = [r for r in sides if r.buffer.space is Space.GLOBAL]
        if not tensors:
            continue
        tiles = [r for r in sides if r.buffer.space is not Space.GLOBAL]
        if len(tensors) == 2 or not tensors[0].whole or not tiles[0].whole:
            raise KernelError(
                "in a kernel without T.Kernel a copy names a whole tensor and a whole tile",
                s.span,
                why="which part of the tensor is meant is inferred from the shapes",
                help="write the grid and the regions: with T.Kernel(...) as (bx, by)",
            )
        out.append(_transfer(s, tensors[0], tiles[0]))
    return out


def _transfer(s: Copy | AtomicTile, tensor: Region, tile: Region) -> Transfer:
    if tile.buffer.ndim > tensor.buffer.ndim:
        raise KernelError(
            f"{tile.buffer.name} has more dimensions {shape_text(tile.buffer.shape)} than {tensor.buffer.name} "
            f"{shape_text(tensor.buffer.shape)}",
            s.span,
        )
    return Transfer(s, tensor, tile, stores=tensor is s.dst)


def _no_tensor(s: Stmt) -> None:
    named = [x.buffer for e in expressions(s) for x in loads(e)]
    named += [s.buffer] if isinstance(s, Store) else []
    for buffer in named:
        if buffer.space is Space.GLOBAL and buffer.shape:
            raise KernelError(
                f"single elements of the tensor {buffer.name} are used in a kernel without T.Kernel",
                s.span,
                why="there is no block number to index them with",
                help="copy the tensor to a tile first, or write the grid: with T.Kernel(...) as (bx, by)",
            )


def classes(body: Iterable[Stmt], moved: Sequence[Transfer]) -> Classes:
    """Dimensions that ops make equal."""
    out = Classes()
    for s in statements(body):
        match s:
            case Gemm():
                (am, ak), (bk, bn) = _order(s.a, s.transpose_a), _order(s.b, s.transpose_b)
                cm, cn = _order(s.c, False)
                out.join(cm, am)
                out.join(cn, bn)
                out.join(ak, bk)
            case Reduce() if s.src.whole and s.dst.whole:
                kept = [n for n in range(s.src.buffer.ndim) if n != s.axis]
                into = kept if s.dst.buffer.ndim == s.src.buffer.ndim else range(len(kept))
                _joined(out, s.src, s.dst, list(zip(kept, into, strict=False)))
            case Scan() if s.src.whole and s.dst.whole:
                _joined(out, s.src, s.dst, [(n, n) for n in range(s.src.buffer.ndim)])
            case Transpose() if s.src.whole and s.dst.whole:
                last = s.src.buffer.ndim - 1
                _joined(
                    out,
                    s.src,
                    s.dst,
                    [(last, last - 1), (last - 1, last), *((n, n) for n in range(last - 1))],
                )
            case Copy() if Space.GLOBAL not in (s.src.buffer.space, s.dst.buffer.space):
                if s.src.whole and s.dst.whole and s.src.buffer.ndim == s.dst.buffer.ndim:
                    _joined(out, s.src, s.dst, [(n, n) for n in range(s.src.buffer.ndim)])
            case Parallel():
                _elementwise(out, s)
            case _:
                pass
    for t in moved:
        for dimension, n in t.pairs():
            out.join((t.tile.buffer.storage, n), (t.tensor.buffer, dimension))
    return out


def _order(r: Region, transposed: bool) -> tuple[Key, Key]:
    dims = [n for n, p in enumerate(r.point) if not p]
    first, second = reversed(dims) if transposed else dims
    return (r.buffer.storage, first), (r.buffer.storage, second)


def _joined(out: Classes, a: Region, b: Region, pairs: Iterable[tuple[int, int]]) -> None:
    for m, n in pairs:
        out.join((a.buffer.storage, m), (b.buffer.storage, n))


def _elementwise(out: Classes, s: Parallel) -> None:
    """Dimensions that one loop variable indexes alone, over their whole extent, are the same."""
    seen: dict[Var, Key] = {}
    for inner in statements(s.body):
        accesses: list[tuple[Buffer, tuple[Expr, ...]]] = [
            (x.buffer, x.indices) for e in expressions(inner) for x in loads(e)
        ]
        if isinstance(inner, Store):
            accesses.append((inner.buffer, inner.indices))
        for buffer, indices in accesses:
            for n, i in enumerate(indices):
                if isinstance(i, Var) and i in s.vars and same(buffer.shape[n], s.extents[s.vars.index(i)]):
                    key = (buffer.storage, n)
                    out.join(seen.setdefault(i, key), key)


def described(found: Classes, moved: Sequence[Transfer]) -> dict[Key, Dimension]:
    """Facts of each class that a transfer touches, by its representative.

    Raises:
        KernelError: two tensors, or two tiles, give one class different sizes.
    """
    out: dict[Key, Dimension] = {}
    for t in moved:
        for dimension, n in t.pairs():
            root = found.find((t.tile.buffer.storage, n))
            extent, tile = t.tensor.buffer.shape[dimension], t.tile.buffer.shape[n]
            if not isinstance(tile, int):
                raise KernelError(f"{t.tile.buffer.name} has no known size", t.stmt.span)
            name = (
                text(extent)
                if isinstance(extent, Expr)
                else f"dimension {dimension} of {t.tensor.buffer.name}"
            )
            new = Dimension(name, extent, tile, t.stores, t.stmt.span)
            old = out.get(root)
            if old is not None:
                _agree(old, new)
                new = Dimension(old.name, old.extent, old.tile, old.stored or t.stores, old.span)
            out[root] = new
    return out


def _agree(old: Dimension, new: Dimension) -> None:
    if same(old.extent, new.extent) and old.tile == new.tile:
        return
    what = "tensors" if old.tile == new.tile else "tiles"
    raise KernelError(
        f"one dimension has two sizes in {what}: {old}, and {new}",
        new.span,
        why="the ops of the kernel make both the same dimension",
        related=[("the other one is here", old.span)] if old.span else (),
    )
