"""Half of a statement on sums: what one of two teams does of it, in the half of the columns that it has in its registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..expr import Buffer, Expr, Load, Space, Var, binary
from ..expr.walk import rebuilt
from ..program import Bind, Copy, Fill, Gemm, Parallel, Region, Stmt, Store
from ..program.visit import read_storages as read
from ..program.visit import written_storages as written
from .panels import Inseparable, Panels, half, part, whole
from .teams import FRONT


@dataclass(frozen=True)
class Halves:
    """``sums``: fragments whose columns are halved. ``instance``: what a team has of a fragment."""

    sums: frozenset[Buffer]
    panels: Panels
    instance: Callable[[Buffer, str], Buffer]

    def of(self, s: Stmt, team: str) -> Stmt:
        """A team's half of a statement on all columns.

        Raises:
            Inseparable: it mixes columns, or does something else with the sums.
        """
        match s:
            case Fill() if s.dst.whole:
                return replace(s, dst=whole(self.instance(s.dst.buffer, team)))
            case Gemm() if s.c.whole and not self.sums & {s.a.buffer.storage, s.b.buffer.storage}:
                return replace(s, b=self._columns(s, team), c=whole(self.instance(s.c.buffer, team)))
            case Copy() if s.src.whole and s.src.buffer in self.sums:
                dst = self._half(s.dst, -1, half(s.src.buffer), team)
                return replace(s, src=whole(self.instance(s.src.buffer, team)), dst=dst)
            case Parallel() if len(s.vars) == 2:
                return self._loop(s, team)
            case _:
                raise Inseparable

    def _columns(self, s: Gemm, team: str) -> Region:
        """What a product into a team's half multiplies by."""
        if s.b.buffer in self.panels.tiles:
            return whole(self.panels.tiles[s.b.buffer][team][0])
        return self._half(s.b, 0 if s.transpose_b else -1, half(s.c.buffer), team)

    def _half(self, r: Region, dimension: int, width: int, team: str) -> Region:
        if [e for e, p in zip(r.extent, r.point, strict=True) if not p][dimension] != 2 * width:
            raise Inseparable
        return part(r, dimension, width if team == FRONT else 0, width)

    def _loop(self, s: Parallel, team: str) -> Stmt:
        """A loop over all elements of the sums, over this team's."""
        row, column = s.vars
        mine = (read(s) | written(s)) & self.sums
        if {b.shape for b in mine} != {s.extents}:
            raise Inseparable
        width = half(next(iter(mine)))
        at = binary("+", column, width if team == FRONT else 0)

        def change(x: Expr) -> Expr:
            match x:
                case Var():
                    return at if x is column else x
                case Load() if x.buffer in self.sums:
                    _own_place(x.indices, row, column)
                    return replace(x, buffer=self.instance(x.buffer, team))
                case _:
                    return rebuilt(x, change, fragment)

        def fragment(b: Buffer) -> Buffer:
            return self.instance(b, team) if b.space is Space.FRAGMENT else b

        def changed(t: Stmt) -> Stmt:
            match t:
                case Store() if t.buffer in self.sums:
                    _own_place(t.indices, row, column)
                    return replace(t, buffer=self.instance(t.buffer, team), value=change(t.value))
                case Bind():
                    return replace(t, value=change(t.value))
                case _:
                    raise Inseparable

        return replace(s, extents=(s.extents[0], width), body=tuple(changed(t) for t in s.body))


def _own_place(indices: Sequence[Expr], row: Var, column: Var) -> None:
    """Each element of the sums must be touched by its own iteration."""
    if len(indices) != 2 or indices[0] is not row or indices[1] is not column:
        raise Inseparable
