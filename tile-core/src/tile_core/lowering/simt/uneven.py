"""Launches whose blocks have more or less to do: takes the loops of a launch, says on which block numbers their lengths depend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod

from ...expr import Const, Expr, Var, const, substitute, variables
from ...inference.bulk import BoxCopy
from ...program import Bind, For, If, Launch, Stmt
from .context import Context
from .deal import Deal, dealt

MOST_TILES = 8192  # that a table may hold
MANY = 32  # tiles of a block
TILE = 2.0  # iterations that beginning and ending a tile takes
KEPT = 0.6  # of the last cache, for what tiles at work at one time read again


def lengths(launch: Launch, loops: Iterable[For]) -> Iterator[tuple[For, Expr]]:
    """Loops whose number of iterations differs between blocks, with that number over the block numbers."""
    known = dict(_bound(launch.body, {}))
    for loop in loops:
        if isinstance(loop.extent, Expr):
            extent = substitute(loop.extent, known)
            if set(variables(extent)) & set(launch.vars):
                yield loop, extent


def _bound(body: Iterable[Stmt], known: Mapping[Var, Expr]) -> Iterator[tuple[Var, Expr]]:
    """Scalars that the body gives a name, over what was there before it."""
    known = dict(known)
    for s in body:
        match s:
            case Bind():
                known[s.var] = substitute(s.value, known)
                yield s.var, known[s.var]
            case For():
                yield from _bound(s.body, known)
            case If():
                yield from _bound(s.then, known)
                yield from _bound(s.other, known)
            case _:
                pass


def rising(context: Context, launch: Launch, loops: Sequence[For]) -> Var | None:
    """The block number with which all loops that differ get longer, if it is one and that is sure.

    Blocks with a high number are then worth beginning first: the short ones fill the gaps at the end.
    """
    var = varying(context, launch, loops)
    if var is None:
        return None
    ends = [_ends(context, launch, var, extent) for _, extent in lengths(launch, loops)]
    return var if all(found and found[0] <= found[1] for found in ends) else None


def varying(context: Context, launch: Launch, loops: Sequence[For]) -> Var | None:
    """The block number that alone says how long the loops that differ are, if its extent and these lengths are known."""
    extents = [extent for _, extent in lengths(launch, loops)]
    used = {v for extent in extents for v in variables(extent)}
    if len(used) != 1:
        return None
    (var,) = used
    return var if all(_ends(context, launch, var, extent) for extent in extents) else None


def _ends(context: Context, launch: Launch, var: Var, extent: Expr) -> tuple[float, float] | None:
    """Iterations in the first and the last of the blocks that ``var`` counts, if they are known."""
    count = dict(zip(launch.vars, launch.grid, strict=True)).get(var)
    if not isinstance(count, int):
        return None
    found = [context.simple(substitute(extent, {var: const(n)})) for n in (0, count - 1)]
    values = [x.value for x in found if isinstance(x, Const)]
    return (values[0], values[1]) if len(values) == 2 else None


def has_many(context: Context, launch: Launch, resident: int) -> bool:
    """Whether each of ``resident`` blocks of a core has so many tiles that their differences even out."""
    grid = [n for n in launch.grid if isinstance(n, int)]
    return len(grid) == len(launch.grid) and prod(grid) >= MANY * context.plan.info.cores * resident


def deal(
    context: Context, launch: Launch, loops: Sequence[For], var: Var | None, resident: int
) -> Deal | None:
    """Tiles dealt out to ``resident`` blocks of each core, where ``var`` alone says how much work a tile is; else None.

    Groups of tiles that read the same tensors follow each other, as many as the last cache holds at one time; in a group the
    tiles with the most work come first.
    """
    blocks = context.plan.info.cores * resident
    grid = tuple(n for n in launch.grid if isinstance(n, int))
    if var is None or len(grid) != len(launch.grid) or not blocks < prod(grid) <= MOST_TILES:
        return None
    place = launch.vars.index(var)
    inner, extent = prod(grid[:place]), grid[place]
    differing = {id(s): x for s, x in lengths(launch, loops)}
    turns = [differing.get(id(s), s.extent) for s in loops]
    work = [_total(context, turns, {var: const(n)}) for n in range(extent)]
    read = max(work) * sum(c.bytes for c in context.plan.bulk.values() if not _uses(c, var))
    together = max(1, int(KEPT * context.plan.info.cache / max(1, read)))
    others = prod(grid) // extent
    order = [
        o // inner * inner * extent + n * inner + o % inner
        for first in range(0, others, together)
        for n in sorted(range(extent), key=lambda n: -work[n])
        for o in range(first, min(others, first + together))
    ]
    return dealt(order, {t: work[t // inner % extent] for t in order}, blocks)


def _total(context: Context, turns: Sequence[int | Expr], at: Mapping[Var, Expr]) -> float:
    """Iterations of all loops of a tile, and what beginning and ending it takes."""
    out = TILE
    for n in turns:
        known = context.simple(substitute(n, at)) if isinstance(n, Expr) else const(n)
        assert isinstance(known, Const), "the lengths of loops that differ depend on one block number"
        out += max(0, known.value)
    return out


def _uses(copy: BoxCopy, var: Var) -> bool:
    return any(v == var for x in copy.start for v in variables(x))
