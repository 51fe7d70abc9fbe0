"""Numbers of elements in memory: takes a buffer and its indices, gives expressions that are simplified by known ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tile_core.expr import Buffer, Const, Expr, Var, binary, const
from tile_core.expr.intervals import Interval, interval
from tile_core.expr.simplify import simplify
from tile_core.program import For, Launch
from tile_core.program.visit import statements


@dataclass(frozen=True)
class Addresses:
    """``ranges``: of variables that count something."""

    ranges: Mapping[Var, Interval] = field(default_factory=dict[Var, Interval])

    @staticmethod
    def of(launch: Launch) -> Addresses:
        """With the ranges of block numbers, thread numbers and loops of a launch."""
        found = {
            v: Interval(0, n - 1 if isinstance(n, int) else None)
            for v, n in zip(launch.vars, launch.grid, strict=True)
        }
        found |= {v: Interval(0, launch.thread_count - 1) for v in launch.thread_vars}
        for s in statements(launch.body):
            if isinstance(s, For) and s.var is not None and isinstance(s.start, Const) and s.step > 0:
                first = int(s.start.value)
                last = first + max(0, s.extent - 1) * s.step if isinstance(s.extent, int) else None
                found[s.var] = Interval(first, last)
        return Addresses(found)

    def range_of(self, v: Var) -> Interval:
        return self.ranges.get(v, Interval())

    def simple(self, x: Expr) -> Expr:
        return simplify(x, self.range_of)

    def negative(self, x: Expr) -> bool:
        """Whether a number may be below zero, as far as is known."""
        low = interval(x, self.range_of).low
        return low is None or low < 0

    def flat(self, b: Buffer, indices: Sequence[Expr], base: int = 0) -> Expr:
        """The number of an element from the beginning of the variable, ``base`` elements before the buffer."""
        out: Expr = const(base)
        for i, step in zip(indices, b.row_major_strides(), strict=True):
            out = binary("+", out, binary("*", i, step))
        return self.simple(out)

    def split(self, at: Expr, by: int) -> tuple[Expr, Expr]:
        """(number of the group of ``by`` elements, place in it)."""
        return self.simple(binary("//", at, by)), self.simple(binary("%", at, by))
