"""Which copies bring what is read once, and which what every block reads again: hints for the last cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from ...expr import Expr, Load, Var, substitute, variables
from ...hardware import TargetInfo
from ...inference.bulk import BoxCopy
from ...program import Bind, Launch
from ...program.visit import statements

SMALL = 0.25  # of the last cache: what is kept on purpose leaves room for the rest
NEAR = 4  # blocks that follow each other: they run at the same time


def reuse(launch: Launch, bulk: Mapping[str, BoxCopy], info: TargetInfo) -> dict[str, bool]:
    """Copies that deserve a hint -> whether their tensor is read again.

    Where a tensor streams, each element fetched by one block, beside small ones that all blocks fetch: the stream should not
    push them out. And where all that a loop reads streams, each element fetched by a few blocks that run at the same time: what
    they have read should go before what they have not. A product of large matrices gets none, since all it reads is read again.
    """
    blocks = frozenset(v for v, n in zip(launch.vars, launch.grid, strict=True) if n != 1)
    bound = {s.var: s.value for s in statements(launch.body) if isinstance(s, Bind)}
    chosen = {name: _chosen_by(c, blocks, bound) for name, c in bulk.items()}
    streams = {name for name, by in chosen.items() if by == blocks}
    again = {name for name, by in chosen.items() if by != blocks and _small(bulk[name], info)}
    if blocks and bulk and all(_by_neighbours(launch, blocks - by) for by in chosen.values()):
        return dict.fromkeys(bulk, False)
    if not blocks or not streams or not again or streams | again != set(bulk):
        return {}
    return {name: name in again for name in bulk}


def _by_neighbours(launch: Launch, others: frozenset[Var]) -> bool:
    """Whether blocks that differ in ``others`` alone, so that they read the same, follow each other.

    The first number runs fastest.
    """
    last = max((n for n, v in enumerate(launch.vars) if v in others), default=-1)
    among = [n for n in launch.grid[: last + 1] if isinstance(n, int)]
    return 0 < last + 1 == len(among) and prod(among) <= NEAR


def _chosen_by(copy: BoxCopy, blocks: frozenset[Var], bound: Mapping[Var, Expr]) -> frozenset[Var]:
    """Block numbers that choose which part of the tensor a block reads. A dimension that a loop walks along is read whole.

    Where a table says which part it is, they are those that choose what is read of the table.
    """
    found = (frozenset(variables(x)) for start in copy.start for x in _places(start, bound))
    return frozenset(v for used in found if used <= blocks for v in used)


def _places(x: Expr, bound: Mapping[Var, Expr]) -> Iterator[Expr]:
    """What an index is, with all names replaced; of what a table says, each index of that."""
    known = substitute(x, bound) if any(v in bound for v in variables(x)) else x
    if known is not x:
        yield from _places(known, bound)
    elif isinstance(known, Load):
        yield from (place for index in known.indices for place in _places(index, bound))
    else:
        yield known


def _small(copy: BoxCopy, info: TargetInfo) -> bool:
    extents = [d for d in copy.tensor.shape if isinstance(d, int)]
    known = len(extents) == len(copy.tensor.shape)
    return known and prod(extents) * copy.tensor.dtype.bits // 8 <= SMALL * info.cache
