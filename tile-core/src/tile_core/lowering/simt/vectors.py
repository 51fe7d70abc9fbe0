"""Loops whose threads run over neighbouring elements, with loads and stores of several elements at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...expr import Buffer, Const, Expr, Load, Select, Space, Var, binary, const, rebuilt, substitute
from ...program import Alloc, Atomic, For, If, Place, Stmt, Store
from ...program.visit import mapped
from .conditions import Path, Run, holding, joined, steady
from .context import Context
from .instructions import VectorMoves
from .nest import Iterations, always, conjunction
from .spots import Spot, spot
from .uses import Key, Uses, uses_of, writes_alone

COST = {Space.GLOBAL: 4, Space.SHARED: 1}  # what a saved access is worth when loops compete


@dataclass(frozen=True)
class Chunk:
    """An access of ``width`` neighbouring elements. ``read`` and ``write``: the path to it; None: never.

    ``array``: where a thread keeps the elements while it computes. ``update``: what is written is this update's value.
    """

    spot: Spot
    width: int
    read: Path | None
    write: Path | None
    array: Buffer
    update: Atomic | None = None

    @property
    def size(self) -> int:
        return self.width * self.spot.buffer.dtype.bytes


@dataclass(frozen=True)
class Vectors:
    """What goes together in a nest: iterations along ``var``, in groups of ``count``."""

    var: Var
    extent: int
    count: int
    chunks: Mapping[Key, Chunk]


def vectors(
    context: Context,
    moves: VectorMoves,
    mine: Iterations,
    body: Sequence[Stmt],
    staged: Mapping[Buffer, Buffer],
) -> Vectors | None:
    """The best loop of the nest to go along with vectors; None if no access gets wider."""
    guards = tuple((g, True) for g in mine.guards)
    uses = uses_of(body, guards)
    if uses is None or not mine.loops:
        return None
    spots = {k: s for k in writes_alone(uses) if (s := spot(context, *k, staged)) is not None}
    best: tuple[float, Vectors] | None = None
    start = context.var("q", 1 << 20)
    for var, extent in reversed(mine.loops):
        found: dict[Key, Chunk] = {}
        for key, where in spots.items():
            chunk = _chunk(context, moves, uses[key], where, (var, extent), start)
            if chunk is not None:
                found[key] = chunk
        worth = sum(COST[c.spot.buffer.space] * (1 - 1 / c.width) for c in found.values())
        if found and (best is None or worth > best[0]):
            best = (worth, Vectors(var, extent, max(c.width for c in found.values()), found))
    return best[1] if best else None


def _chunk(
    context: Context, moves: VectorMoves, use: Uses, where: Spot, loop: tuple[Var, int], start: Var
) -> Chunk | None:
    """The widest access along a loop."""
    var, extent = loop
    run = where.run(context, var, extent)
    if run == 1:
        return None
    if use.updates:
        return _update(context, use, where, loop, start, run)
    read = joined(use.reads) if use.needed else None
    write = joined(use.writes)
    if (use.needed and read is None) or (use.writes and write is None):
        return None
    paths = [p for p in (read, write) if p is not None]
    if not all(steady(p) for p in paths):
        return None
    widths = [size // where.buffer.dtype.bytes for size in moves.widths]
    width = _widest(context, widths, run, paths, var, start)
    return Chunk(where, width, read, write, _array(where)) if width else None


def _update(
    context: Context, use: Uses, where: Spot, loop: tuple[Var, int], start: Var, run: int
) -> Chunk | None:
    """The widest atomic update along a loop, of elements that the body does nothing else with."""
    updates = context.instructions.updates
    if updates is None or len(use.updates) != 1 or use.reads or use.writes:
        return None
    ((one, path),) = use.updates
    if where.buffer.space is not Space.GLOBAL or one.order != "relaxed" or not steady(path):
        return None
    width = _widest(context, updates.widths(one.op, where.buffer.dtype), run, [path], loop[0], start)
    return Chunk(where, width, None, path, _array(where), one) if width else None


def _widest(
    context: Context, widths: Sequence[int], run: int, paths: Sequence[Path], var: Var, start: Var
) -> int:
    """The first of ``widths`` that runs of elements are made of, and for which the conditions of all paths can be told; or 0."""
    for width in widths:
        if width > 1 and run % width == 0:
            some = Run(context, var, binary("*", start, width), width)
            if all(some.everywhere(c, side) is not None for p in paths for c, side in p):
                return width
    return 0


def _array(where: Spot) -> Buffer:
    return Buffer(where.buffer.name, (), where.buffer.dtype, Space.LOCAL)


Placed = Callable[[Sequence[Stmt]], tuple[Stmt, ...]]


def around(
    context: Context,
    moves: VectorMoves,
    plan: Vectors,
    mine: Iterations,
    body: Sequence[Stmt],
    placed: Placed,
) -> tuple[Stmt, ...]:
    """The nest of ``mine`` around groups of iterations. ``placed`` puts element statements where the elements are."""
    groups = plan.extent // plan.count
    q = context.var("q", groups)
    start = context.simple(binary("*", q, plan.count)) if groups > 1 else const(0)
    loops = tuple((q, groups) if v == plan.var else (v, n) for v, n in mine.loops)
    group = _Group(context, moves, plan, mine.first, placed, start)
    inner = group.direct(body, mine.guards) or group.through_arrays(body, mine.guards)
    return replace(mine, loops=loops, guards=()).around(inner)


@dataclass(frozen=True)
class _Group:
    """The statements of one group of iterations, which begins at ``start``."""

    context: Context
    moves: VectorMoves
    plan: Vectors
    first: tuple[Expr, ...]
    placed: Placed
    start: Expr

    def run(self, step: int, width: int) -> Run:
        start = binary("+", self.start, step)
        return Run(self.context, self.plan.var, self.context.simple(start), width)

    def runs(self, width: int) -> Iterator[tuple[int, Run]]:
        return ((n, self.run(n, width)) for n in range(0, self.plan.count, width))

    def place(self, c: Chunk, run: Run, access: str) -> Place:
        at = c.spot.at(self.context, self.plan.var, run.start)
        return Place(c.spot.buffer, at, access, aligned=c.size)

    def through_arrays(self, body: Sequence[Stmt], guards: Sequence[Expr]) -> tuple[Stmt, ...]:
        """Load vectors to private arrays, compute element by element, store vectors."""
        chunks = {k: replace(c, array=self.array(c.array)) for k, c in self.plan.chunks.items()}
        out: list[Stmt] = [Alloc(c.array) for c in chunks.values()]
        for key, c in chunks.items():
            if c.read is not None:
                for n, run in self.runs(c.width):
                    out += self.load(key, c, n, run)
        e = self.context.var("e", self.plan.count)
        inner = tuple(_renamed(s, chunks, e) for s in body)
        inner = (If(conjunction(guards), inner),) if guards else inner
        out.append(
            For(e, const(0), self.plan.count, self.element(inner, binary("+", self.start, e)), "unroll")
        )
        for key, c in chunks.items():
            if c.write is not None:
                for n, run in self.runs(c.width):
                    out += self.store(key, c, n, run)
        return tuple(out)

    def array(self, like: Buffer) -> Buffer:
        return replace(like, shape=(self.plan.count,), number=self.context.unique(like.name))

    def element(self, body: Sequence[Stmt], at: Expr) -> tuple[Stmt, ...]:
        """Statements of one iteration, where the elements are."""
        values = {self.plan.var: self.context.simple(at)}
        return self.placed([substituted(s, values) for s in body])

    def load(self, key: Key, c: Chunk, n: int, run: Run) -> Iterator[Stmt]:
        to = Place(c.array, (const(n),), "w", aligned=c.size)
        source, path = self.place(c, run, "r"), c.read or ()
        inside = taken(run, path)
        if always(inside):
            yield self.moves.move(to, source, c.size)
        elif uniform(run, path):
            yield self.moves.move(to, source, c.size, inside)
        else:
            e = self.context.var("e", c.width)
            one = Store(c.array, (binary("+", e, n),), Load(*key))
            steps = self.element((If(holding(path), (one,)),), binary("+", run.start, e))
            yield If(inside, (self.moves.move(to, source, c.size),), (_loop(e, c.width, steps),))

    def store(self, key: Key, c: Chunk, n: int, run: Run) -> Iterator[Stmt]:
        source = Place(c.array, (const(n),), "r", aligned=c.size)
        to, path = self.place(c, run, "w"), c.write or ()
        move = self.once(self.written(c, to, source))
        inside = taken(run, path)
        if always(inside):
            yield move
        elif uniform(run, path):
            yield If(inside, (move,))
        else:
            e = self.context.var("e", c.width)
            value = Load(c.array, (binary("+", e, n),))
            one = Store(*key, value) if c.update is None else replace(c.update, value=value)
            steps = self.element((If(holding(path), (one,)),), binary("+", run.start, e))
            yield If(inside, (move,), (_loop(e, c.width, steps),))

    def written(self, c: Chunk, to: Place, source: Place) -> Stmt:
        updates = self.context.instructions.updates
        if c.update is None or updates is None:
            return self.moves.move(to, source, c.size)
        return updates.update(c.update.op, replace(to, access="rw"), source, c.width)

    def once(self, s: Stmt) -> Stmt:
        return If(conjunction(self.first), (s,)) if self.first else s

    def direct(self, body: Sequence[Stmt], guards: Sequence[Expr]) -> tuple[Stmt, ...] | None:
        """From memory to memory without a stop, where the body only copies."""
        found = copied(body)
        if found is None or len(self.plan.chunks) != 2:
            return None
        to, source = (self.plan.chunks.get(k) for k in found)
        if (
            to is None
            or source is None
            or to.width != source.width
            or to.write is None
            or source.read is None
        ):
            return None
        if to.spot.buffer.dtype != source.spot.buffer.dtype or source.read[: len(to.write)] != to.write:
            return None
        more = source.read[len(to.write) :]
        out: list[Stmt] = []
        for _, run in self.runs(to.width):
            if not (uniform(run, to.write) and uniform(run, more)):
                return None
            inside = taken(run, more)
            places = self.place(to, run, "w"), self.place(source, run, "r")
            move = self.once(self.moves.move(*places, to.size, None if always(inside) else inside))
            when = taken(run, to.write)
            out.append(move if always(when) else If(when, (move,)))
        return tuple(out)


def taken(run: Run, path: Path) -> Expr:
    """What must hold so that all iterations of a run take a path."""
    out: Expr = const(True)
    for c, side in path:
        found = run.everywhere(c, side)
        assert found is not None, "the chunk was chosen because it can be told"
        out = binary("and", out, run.at(found, 0))
    return out


def uniform(run: Run, path: Path) -> bool:
    """Whether either all iterations of a run take a path or none."""
    return all(run.uniform(c) for c, _ in path)


def copied(body: Sequence[Stmt]) -> tuple[Key, Key] | None:
    """(destination, source) of a body that only copies an element, or zero where that is not there."""
    if len(body) != 1:
        return None
    match body[0]:
        case If(then=then, other=()):
            return copied(then)
        case Store(value=Load() as load) as s:
            return (s.buffer, s.indices), (load.buffer, load.indices)
        case Store(value=Select(then=Load() as load, other=Const(value=0), lazy=True)) as s:
            return (s.buffer, s.indices), (load.buffer, load.indices)
        case _:
            return None


def _renamed(s: Stmt, chunks: Mapping[Key, Chunk], e: Var) -> Stmt:
    """The statement on the private arrays."""

    def value(x: Expr) -> Expr:
        if isinstance(x, Load) and (c := chunks.get((x.buffer, x.indices))) is not None:
            return Load(c.array, (e,), span=x.span)
        return rebuilt(x, value)

    new = mapped(s, value, lambda body: tuple(_renamed(t, chunks, e) for t in body))
    if (
        isinstance(s, Store)
        and isinstance(new, Store)
        and (c := chunks.get((s.buffer, s.indices))) is not None
    ):
        return replace(new, buffer=c.array, indices=(e,))
    if isinstance(new, Atomic) and isinstance(s, Atomic) and (c := chunks.get((s.buffer, s.indices))):
        assert new.value is not None, "an update has a value"
        return Store(c.array, (e,), new.value, span=s.span)
    return new


def substituted(s: Stmt, values: Mapping[Var, Expr]) -> Stmt:
    """A statement with variables replaced by values."""
    return mapped(
        s, lambda x: substitute(x, values), lambda body: tuple(substituted(t, values) for t in body)
    )


def _loop(e: Var, count: int, body: tuple[Stmt, ...]) -> Stmt:
    return For(e, const(0), count, body, "unroll")
