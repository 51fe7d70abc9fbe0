"""Which copies bring what is read once, and which what every block reads again: hints for the last cache."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ...expr import Var, variables
from ...hardware import TargetInfo
from ...inference.bulk import BoxCopy
from ...program import Bind, Launch
from ...program.visit import statements

SMALL = 0.25  # of the last cache: what is kept on purpose leaves room for the rest


def reuse(launch: Launch, bulk: Mapping[str, BoxCopy], info: TargetInfo) -> dict[str, bool]:
    """Copies that deserve a hint -> whether their tensor is read again.

    Only where one tensor streams, each element fetched by one block, beside small ones that all blocks fetch: then the stream
    should not push them out. A product of large matrices gets none, since all it reads is read again.
    """
    blocks = frozenset(v for v, n in zip(launch.vars, launch.grid, strict=True) if n != 1)
    bound = {s.var: frozenset(variables(s.value)) for s in statements(launch.body) if isinstance(s, Bind)}
    chosen = {name: _chosen_by(c, blocks, bound) for name, c in bulk.items()}
    streams = {name for name, by in chosen.items() if by == blocks}
    again = {name for name, by in chosen.items() if by != blocks and _small(bulk[name], info)}
    if not blocks or not streams or not again or streams | again != set(bulk):
        return {}
    return {name: name in again for name in bulk}


def _chosen_by(copy: BoxCopy, blocks: frozenset[Var], bound: Mapping[Var, frozenset[Var]]) -> frozenset[Var]:
    """Block numbers that choose which part of the tensor a block reads. A dimension that a loop walks along is read whole."""
    out: frozenset[Var] = frozenset()
    for x in copy.start:
        found = frozenset(w for v in variables(x) for w in bound.get(v, frozenset((v,))))
        if found <= blocks:
            out |= found
    return out


def _small(copy: BoxCopy, info: TargetInfo) -> bool:
    extents = [d for d in copy.tensor.shape if isinstance(d, int)]
    known = len(extents) == len(copy.tensor.shape)
    return known and prod(extents) * copy.tensor.dtype.bits // 8 <= SMALL * info.cache
