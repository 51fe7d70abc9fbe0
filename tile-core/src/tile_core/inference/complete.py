"""Complete an open program: a kernel written without ``T.Kernel`` gets its grid, regions, loop indices and cleared accumulators.

Everything follows from which dimensions are the same (``dimensions``). A dimension that is stored to is spread over the grid; one
that is only read must be walked by a loop without index. Where two readings are possible, both are shown and none is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..dtypes import INT32
from ..errors import KernelError
from ..expr import Buffer, Expr, Var, ceildiv, const, dim, expr, text, variables
from ..expr.affine import difference, same
from ..program import Alloc, AtomicTile, Copy, Extent, Fill, For, Gemm, Launch, Region, Stmt, TileProgram
from ..program.visit import bodies, expressions, mapped, read_buffers, statements, written_buffers
from ..span import Span
from .dimensions import Classes, Dimension, Key, Transfer, classes, described, transfers

DEFAULT_THREADS = 128


@dataclass(frozen=True)
class Completion:
    """A program that has its launches, and a sentence for each thing that was inferred."""

    program: TileProgram
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Walk:
    """A dimension and the variable that counts its tiles."""

    dimension: Dimension
    var: Var


def complete(program: TileProgram) -> Completion:
    """``program`` with its grid, regions, loop indices and clearing; a program that has a launch comes back as it is.

    Raises:
        KernelError: a dimension that nothing walks, or that two things could walk.
    """
    if not program.is_open:
        return Completion(program)
    return _Completer(program).run()


class _Completer:
    """The steps for one program. ``index`` maps the representative of a class to the variable that counts its tiles."""

    def __init__(self, program: TileProgram) -> None:
        self.program = program
        self.moved = transfers(program.body)
        if not any(t.stores for t in self.moved):
            raise KernelError(
                f"{program.name} stores nothing to a tensor",
                program.span,
                help="end with T.copy(tile, tensor)",
            )
        self.classes: Classes = classes(program.body, self.moved)
        self.dimensions: dict[Key, Dimension] = described(self.classes, self.moved)
        self.index: dict[Key, Walk] = {}
        self.batch: dict[tuple[Buffer, int], Walk] = {}
        self.loop_vars: dict[int, Var] = {}
        self.notes: list[str] = []

    def run(self) -> Completion:
        self.loops(self.program.body)
        grid = self.grid()
        for root, d in self.dimensions.items():
            if d.tiled and root not in self.index:
                self.unwalked(d)
        body = self.cleared(self.rewritten(self.program.body))
        vars, extents = self.launched(grid)
        launch = Launch(vars, extents, (DEFAULT_THREADS,), body, threads_given=False, span=self.program.span)
        return Completion(replace(self.program, body=(launch,)), tuple(self.notes))

    # Loops.

    def loops(self, body: Sequence[Stmt]) -> None:
        """Give every loop without index the dimensions that it walks, outermost first."""
        for s in body:
            if isinstance(s, For) and (s.var is None or not _uses(s.body, s.var)):
                self.loop(s)
            for inner in bodies(s):
                self.loops(inner)

    def loop(self, s: For) -> None:
        found = [
            (r, d)
            for r, d in self.dimensions.items()
            if d.tiled and r not in self.index and self.only_in(r, s)
        ]
        fitting = [(r, d) for r, d in found if same(dim(ceildiv(d.extent, d.tile)), s.extent)]
        read = [(r, d) for r, d in fitting if not d.stored]
        stored = [(r, d) for r, d in fitting if d.stored]
        if stored:
            self.two_readings(s, stored[0][1], read)
        if not read:
            if s.var is not None:
                return
            if same(s.extent, 1):  # all of a dimension is one tile
                self.loop_vars[id(s)] = self.counter(s)
                return
            self.nothing_walks(s, [d for _, d in found if not d.stored])
        inner = [t for t in statements(s.body) if isinstance(t, For) and t.var is None]
        for other in inner:
            for r, d in read:
                if self.only_in(r, other) and same(other.extent, s.extent):
                    self.two_loops(d, s, other)
        var = self.counter(s)
        self.loop_vars[id(s)] = var
        for r, d in read:
            self.index[r] = Walk(d, var)
            self.notes.append(f"the loop at line {_line(s.span)} walks {d}: {var.name}")

    def counter(self, s: For) -> Var:
        """The loop's own variable, or a new one: k, k1, k2 ..."""
        if s.var is not None:
            return s.var
        number = len(self.loop_vars)
        return Var(f"k{number or ''}", INT32, 1 + number)

    def only_in(self, root: Key, s: For) -> bool:
        """Whether every transfer that mentions a dimension stands inside ``s``."""
        inside = {id(t) for t in statements(s.body)}
        users = [t for t in self.moved if any(self.root(t, n) == root for _, n in t.pairs())]
        return bool(users) and all(id(t.stmt) in inside for t in users)

    def root(self, t: Transfer, n: int) -> Key:
        return self.classes.find((t.tile.buffer.storage, n))

    def two_readings(self, s: For, d: Dimension, read: Sequence[tuple[Key, Dimension]]) -> None:
        also = f", together with {read[0][1]}" if read else ""
        raise KernelError(
            f"two readings are possible for {d}",
            s.span,
            why=f"(1) this loop walks it{also}: each block stores all of its tiles; "
            f"(2) the grid walks it: each block stores one tile, and the loop repeats that",
            help="write the grid and the regions: with T.Kernel(...) as (bx, by)",
            related=[("it is stored here", self.store_span(d))],
        )

    def store_span(self, d: Dimension) -> Span:
        spans = [
            t.stmt.span
            for t in self.moved
            if t.stores and t.stmt.span and any(self.dimensions[self.root(t, n)] == d for _, n in t.pairs())
        ]
        return spans[0]

    def two_loops(self, d: Dimension, s: For, other: For) -> None:
        raise KernelError(
            f"two loops could walk {d}",
            s.span,
            why="both run as often as there are tiles of it",
            help="give the loops indices and write the regions, in a T.Kernel block",
            related=[("the other loop", other.span)] if other.span else (),
        )

    def nothing_walks(self, s: For, found: Sequence[Dimension]) -> None:
        count = text(s.extent)
        for d in found:
            tiles = ceildiv(d.extent, d.tile)
            raise KernelError(
                f"the loop runs {count} times, but {text(tiles)} tiles cover {d}",
                s.span,
                why="the last tile would be left out" if _fewer(s.extent, tiles) else "",
                help="loop over T.ceildiv(extent, tile): the tail is zero-filled",
            )
        raise KernelError(
            f"the loop runs {count} times, but nothing in it is a tile of something larger",
            s.span,
            help="give the loop an index if it only repeats: for i in T.serial(n)",
        )

    def unwalked(self, d: Dimension) -> None:
        raise KernelError(
            f"only one tile of {d} is read: nothing walks the others",
            d.span,
            help="put the copy into a loop: with T.Pipelined(T.ceildiv(extent, tile)):",
        )

    # The grid.

    def grid(self) -> list[Walk]:
        """Walks of the stored dimensions, the last dimension of the first stored tensor first."""
        first = next(t for t in self.moved if t.stores)
        out: list[Walk] = []
        for dimension, n in reversed(first.pairs()):
            root = self.root(first, n)
            d = self.dimensions[root]
            if d.tiled and root not in self.index:
                walk = self.index[root] = Walk(d, Var(f"b{'xyzw'[len(out)]}", INT32, 1))
                out.append(walk)
                self.notes.append(
                    f"blocks {walk.var.name} walk {d} (dimension {dimension} of {first.tensor.buffer.name})"
                )
        out += self.batches(first, len(out))
        self.complete_stores(out)
        return out

    def batches(self, first: Transfer, used: int) -> list[Walk]:
        """Dimensions that tensors have in front of their tiles': paired by extent, one block for each value."""
        out: list[Walk] = []
        for n in reversed(range(first.lead)):
            extent = first.tensor.buffer.shape[n]
            if same(extent, 1):
                continue
            name = (
                text(extent) if isinstance(extent, Expr) else f"dimension {n} of {first.tensor.buffer.name}"
            )
            d = Dimension(name, extent, 1, True, first.stmt.span)
            walk = Walk(d, Var(f"b{'xyzw'[used + len(out)] if used + len(out) < 4 else n}", INT32, 1))
            out.append(walk)
            self.notes.append(f"blocks {walk.var.name} walk {d}")
        for t in self.moved:
            self.pair_batch(t, out)
        return out

    def pair_batch(self, t: Transfer, walks: Sequence[Walk]) -> None:
        for n in range(t.lead):
            extent = t.tensor.buffer.shape[n]
            if same(extent, 1):
                continue
            twins = [m for m in range(t.lead) if same(t.tensor.buffer.shape[m], extent)]
            fitting = [w for w in walks if same(w.dimension.extent, extent)]
            if len(fitting) != 1 or len(twins) != 1:
                what = (
                    "several dimensions have that size"
                    if fitting
                    else "no stored tensor has such a dimension"
                )
                raise KernelError(
                    f"which part of dimension {n} of {t.tensor.buffer.name} a block takes cannot be told: {what}",
                    t.stmt.span,
                    help="write the grid and the regions: with T.Kernel(...) as (bx, by)",
                )
            self.batch[t.tensor.buffer, n] = fitting[0]

    def complete_stores(self, grid: Sequence[Walk]) -> None:
        """Each stored tensor must be walked by all of the grid, else many blocks would write one element."""
        for t in (t for t in self.moved if t.stores and isinstance(t.stmt, Copy)):
            walked = {self.index[self.root(t, n)].var for _, n in t.pairs() if self.root(t, n) in self.index}
            walked |= {
                self.batch[t.tensor.buffer, n].var
                for n in range(t.lead)
                if (t.tensor.buffer, n) in self.batch
            }
            for w in grid:
                if w.var not in walked:
                    raise KernelError(
                        f"all blocks along {w.dimension} would write the same part of {t.tensor.buffer.name}",
                        t.stmt.span,
                        why="the grid walks that dimension for another output",
                        help="use two kernels, or T.atomic_add, or write the grid yourself",
                    )

    def launched(self, grid: Sequence[Walk]) -> tuple[tuple[Var, ...], tuple[Extent, ...]]:
        if not grid:
            return (Var("bx", INT32, 1),), (1,)
        if len(grid) > 3:
            raise KernelError(
                f"the grid would have {len(grid)} dimensions, it can have three",
                self.program.span,
                help="write the grid yourself and split one block number with // and %",
            )
        return tuple(w.var for w in grid), tuple(
            dim(ceildiv(w.dimension.extent, w.dimension.tile)) for w in grid
        )

    # The body.

    def rewritten(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple(self.statement(s) for s in body)

    def statement(self, s: Stmt) -> Stmt:
        if isinstance(s, For) and id(s) in self.loop_vars:
            return replace(s, var=self.loop_vars[id(s)], body=self.rewritten(s.body))
        transfer = next((t for t in self.moved if t.stmt is s), None)
        if transfer is None:
            return mapped(s, lambda x: x, self.rewritten)
        region = self.region(transfer)
        if isinstance(s, Copy):
            return replace(s, dst=region) if transfer.stores else replace(s, src=region)
        if isinstance(s, AtomicTile):
            return replace(s, dst=region) if transfer.stores else replace(s, value=region)
        raise TypeError(type(s).__name__)

    def region(self, t: Transfer) -> Region:
        """The tile's part of the tensor."""
        start: list[Expr] = []
        extent: list[Extent] = []
        for n in range(t.lead):
            walk = self.batch.get((t.tensor.buffer, n))
            start.append(const(0) if walk is None else walk.var)
            extent.append(1)
        for _, n in t.pairs():
            walk = self.index.get(self.root(t, n))
            start.append(const(0) if walk is None else walk.var * walk.dimension.tile)
            extent.append(t.tile.buffer.shape[n])
        points = tuple(n < t.lead for n in range(t.tensor.buffer.ndim))
        return Region(t.tensor.buffer, tuple(start), tuple(extent), points, span=t.tensor.span)

    # Accumulators.

    def cleared(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Clear accumulators that nothing initialises: before their loops, or in each iteration that begins a new tile."""
        written: set[Buffer] = set()
        out: list[Stmt] = []
        for s in body:
            fresh: set[int] = set()
            for g in [t for t in statements((s,)) if isinstance(t, Gemm) and not t.clear]:
                owner = g.c.buffer.storage
                if owner in written or self.initialised(owner, g, s):
                    continue
                written.add(owner)
                walker = self.walker(g)
                if walker is None:
                    self.not_read_inside(owner, s)
                    out.append(Fill(g.c, expr(0).astype(owner.dtype), span=g.span))
                    self.notes.append(f"{owner.name} is cleared before line {_line(s.span)}")
                else:
                    fresh.add(id(g))
                    self.notes.append(
                        f"{owner.name} is a new tile in each iteration of {walker.name}, and cleared there"
                    )
            written |= {b.storage for t in statements((s,)) for b in written_buffers(t)}
            out.append(_cleared_gemms(s, fresh))
        return tuple(out)

    @staticmethod
    def initialised(owner: Buffer, g: Gemm, s: Stmt) -> bool:
        """Whether another statement writes the accumulator before the gemm, inside the same top-level statement."""
        for t in statements((s,)):
            if t is g:
                return False
            if not isinstance(t, Alloc) and any(b.storage == owner for b in written_buffers(t)):
                return True
        return False

    def walker(self, g: Gemm) -> Var | None:
        """The loop variable that one of the accumulator's dimensions advances with, if any."""
        loops = set(self.loop_vars.values())
        for n in range(g.c.buffer.ndim):
            walk = self.index.get(self.classes.find((g.c.buffer.storage, n)))
            if walk is not None and walk.var in loops:
                return walk.var
        return None

    @staticmethod
    def not_read_inside(owner: Buffer, s: Stmt) -> None:
        for t in statements((s,)):
            if (
                isinstance(s, For)
                and not isinstance(t, Gemm)
                and any(b.storage == owner for b in read_buffers(t))
            ):
                raise KernelError(
                    f"two readings are possible for the accumulator {owner.name}",
                    t.span,
                    why="it is read inside the loop: (1) it adds up over the iterations; (2) it starts from zero in each",
                    help=f"say which: T.clear({owner.name}) before the loop, or in it",
                )


def _cleared_gemms(s: Stmt, fresh: set[int]) -> Stmt:
    if isinstance(s, Gemm):
        return replace(s, clear=True) if id(s) in fresh else s
    return mapped(s, lambda x: x, lambda body: tuple(_cleared_gemms(t, fresh) for t in body)) if fresh else s


def _uses(body: Sequence[Stmt], var: Var) -> bool:
    return any(v == var for s in statements(body) for x in expressions(s) for v in variables(x))


def _fewer(count: Extent, tiles: Extent) -> bool:
    gap = difference(tiles, count)
    return gap is None or gap > 0


def _line(span: Span | None) -> int | str:
    return span.line if span else "?"
