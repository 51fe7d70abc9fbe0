"""The oracle for plans: runs every iteration of every op on paper and asks whether its thread holds what it touches.

It reads the tile program and the plan only, and shares no code with inference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from tile_core.expr import Binary, Buffer, Cast, Const, Expr, Load, Space, Unary, Var, walk
from tile_core.graph import Node
from tile_core.inference.plan import TilePlan
from tile_core.layout.layout import Axis, Layout, injective
from tile_core.program import AtomicTile, Copy, Fill, For, Parallel, Quantify, Region, Stmt, Store, Transpose
from tile_core.program.visit import expressions, statements

Values = dict[Var, np.ndarray]
OPS = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "//": np.floor_divide,
    "%": np.mod,
    "min": np.minimum,
    "max": np.maximum,
}


def value(x: Expr | int, at: Values, size: int) -> np.ndarray:
    match x:
        case int():
            return np.full(size, x)
        case Const():
            return np.full(size, int(x.value))
        case Var():
            return at[x]
        case Cast():
            return value(x.value, at, size)
        case Unary(op="-"):
            return -value(x.value, at, size)
        case Binary():
            return OPS[x.op](value(x.a, at, size), value(x.b, at, size))
        case _:
            raise TypeError(type(x).__name__)


def threads_of(layout: Layout) -> np.ndarray:
    """(elements of the shape, copies) -> thread"""
    inside = tuple(slice(0, n) for n in layout.shape)
    first = layout.table(Axis.THREAD)[inside].ravel()
    digits = product(*(range(r.extent) for r in layout.replicas))
    shifts = [sum(d * r.stride for d, r in zip(ds, layout.replicas, strict=True)) for ds in digits]
    return first[:, None] + np.array(shifts)[None, :]


def check(plan: TilePlan) -> int:
    """Raise ``AssertionError`` where a thread lacks an element; returns how many accesses were looked at."""
    count = 0
    for launch in plan.program.launches:
        for buffer, layout in plan.layouts.items():
            assert layout.shape == (buffer.shape or (1,)), buffer
            assert injective(layout), buffer
            assert layout.cosize(Axis.THREAD) <= launch.thread_count
    for node in plan.graph.nodes:
        if (
            node.kind in ("copy", "fill", "parallel", "atomic", "transpose", "quantify")
            and node.name in plan.loops
        ):
            count += check_node(plan, node)
    return count


def check_node(plan: TilePlan, node: Node) -> int:
    moved = {(m.node, m.buffer.name) for m in plan.moves if m.buffer is not None}
    around = loops_around(plan, node)
    extents, accesses = accesses_of(node.stmt)
    loop, window = plan.loops[node.name], plan.windows.get(node.name, {})
    grid = np.unravel_index(np.arange(int(np.prod(extents))), extents) if extents else (np.zeros(1, int),)
    rows = [g + window.get(k, (0, 0))[0] for k, g in enumerate(grid)]
    run = threads_of(loop)[np.ravel_multi_index(rows, loop.shape)]
    count = 0
    for a in accesses:
        if a.buffer.space is not Space.FRAGMENT or (node.name, a.buffer.storage.name) in moved:
            continue
        for outer in outer_values([*around, *a.inner]):
            spots = a.spots(grid, {v: np.full(len(grid[0]), n) for v, n in outer.items()})
            home = threads_of(plan.layouts[a.buffer.storage])[np.ravel_multi_index(spots, a.buffer.shape)]
            held = (run[:, :, None] == home[:, None, :]).any(axis=2).all()
            assert held, f"{node.name} touches {a.buffer.name} where it is not"
            if a.write:
                reached = (home[:, :, None] == run[:, None, :]).any(axis=2).all()
                assert reached, f"{node.name} leaves stale copies of {a.buffer.name}"
            count += 1
    return count


Grid = Sequence[np.ndarray]


@dataclass(frozen=True)
class Seen:
    """An access of a statement. ``spots``: its coordinates for the iterations of a grid. ``inner``: serial loops inside."""

    buffer: Buffer
    write: bool
    spots: Callable[[Grid, Values], list[np.ndarray]]
    inner: tuple[For, ...] = ()


def element(
    buffer: Buffer, write: bool, vars: Sequence[Var], indices: Sequence[Expr], inner: tuple[For, ...]
) -> Seen:
    def spots(grid: Grid, at: Values) -> list[np.ndarray]:
        at = {**at, **dict(zip(vars, grid, strict=True))}
        return [value(x, at, len(grid[0])) for x in indices]

    return Seen(buffer, write, spots, inner)


def box(r: Region, write: bool, turned: bool = False) -> Seen:
    def spots(grid: Grid, at: Values) -> list[np.ndarray]:
        use = [*grid[:-2], grid[-1], grid[-2]] if turned else list(grid)
        out: list[np.ndarray] = []
        for start, point in zip(reversed(r.start), reversed(r.point), strict=True):
            first = value(start, at, len(grid[0]))
            out.insert(0, first if point or not use else first + use.pop())
        return out

    return Seen(r.buffer, write, spots)


def core(r: Region) -> tuple[int, ...]:
    shape = list(r.shape)
    while shape and shape[0] == 1:
        shape.pop(0)
    return tuple(shape)  # type: ignore[arg-type]


def accesses_of(s: Stmt) -> tuple[tuple[int, ...], list[Seen]]:
    match s:
        case Parallel():
            return s.extents, list(_elements(s))  # type: ignore[return-value]
        case Copy() | Transpose():
            extents = max(core(s.src), core(s.dst), key=len)
            extents = (
                extents[::-1]
                if isinstance(s, Transpose) and extents is core(s.src)
                else core(s.dst) or extents
            )
            return extents, [box(s.src, False, isinstance(s, Transpose)), box(s.dst, True)]
        case AtomicTile():
            return core(s.value), [box(s.value, False), box(s.dst, True)]
        case Fill():
            return core(s.dst), [box(s.dst, True)]
        case Quantify():
            return core(s.src), [box(s.src, False)]
        case _:
            raise TypeError(type(s).__name__)


def _elements(s: Parallel) -> Iterator[Seen]:
    inner = tuple(x for x in statements(s.body) if isinstance(x, For))
    for x in statements(s.body):
        for e in expressions(x):
            for load in walk(e):
                if isinstance(load, Load) and load.indices:
                    yield element(load.buffer, False, s.vars, load.indices, inner)
        if isinstance(x, Store) and x.indices:
            yield element(x.buffer, True, s.vars, x.indices, inner)


def loops_around(plan: TilePlan, node: Node) -> list[For]:
    out: list[For] = []
    at = node.loop
    while at:
        loop = plan.graph.loop(at)
        if isinstance(loop.stmt, For):
            out.append(loop.stmt)
        at = loop.parent
    return out


def outer_values(around: list[For]) -> Iterator[dict[Var, int]]:
    """All iterations of the loops outside (their extents are small in tests)."""
    spans = [range(f.start.value, f.start.value + f.extent * f.step, f.step) for f in around]  # type: ignore[union-attr]
    for at in product(*spans):
        yield {f.var: n for f, n in zip(around, at, strict=True) if f.var is not None}
