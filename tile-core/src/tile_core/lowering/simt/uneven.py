"""Launches whose blocks have more or less to do: takes the loops of a launch, says on which block numbers their lengths depend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ...expr import Const, Expr, Var, const, substitute, variables
from ...program import Bind, For, If, Launch, Stmt
from .context import Context


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


def rising(context: Context, launch: Launch, loops: Iterable[For]) -> Var | None:
    """The block number with which all loops that differ get longer, if it is one and that is sure.

    Blocks with a high number are then worth beginning first: the short ones fill the gaps at the end.
    """
    found = list(lengths(launch, loops))
    used = {v for _, extent in found for v in variables(extent)}
    if len(used) != 1:
        return None
    (var,) = used
    last = dict(zip(launch.vars, launch.grid, strict=True)).get(var)
    if not isinstance(last, int):
        return None
    for _, extent in found:
        ends = [context.simple(substitute(extent, {var: const(n)})) for n in (0, last - 1)]
        if not all(isinstance(e, Const) for e in ends):
            return None
        first, final = (e.value for e in ends if isinstance(e, Const))
        if first > final:
            return None
    return var
