"""Products of small integers by instructions that sum a few of them: a gemm whose sums are registers in, its steps along k out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...dtypes import DType
from ...expr import Buffer, Expr, Load, Space, Var, binary, const
from ...layout.layout import Axis, Layout
from ...program import Alloc, For, Place, Stmt, Store
from ...span import Span
from .context import Context, coordinate
from .instructions import Dots
from .nest import iterations
from .places import placed
from .spots import spot

Places = Callable[[tuple[Expr, ...]], tuple[Expr, ...]]


@dataclass(frozen=True)
class Source:
    """One operand. ``element``: from (row or column of the product, k) to the index in the buffer."""

    buffer: Buffer
    element: Places


@dataclass(frozen=True)
class DotProducts:
    """``layout``: of the sums, which are in ``sums``. ``width``: products that one instruction adds."""

    context: Context
    unit: Dots
    width: int
    layout: Layout
    sums: Buffer
    span: Span | None

    def steps(self, a: Source, b: Source, count: int) -> Stmt:
        """``count`` instructions for every element of the sums, along k from its start on."""
        q = self.context.var("q", count)
        mine = iterations(self.context, self.layout, self.layout.shape)
        i, j = mine.index
        load_a, left = self.operand(a, i, q)
        load_b, right = self.operand(b, j, q)
        at = (coordinate(self.layout, mine.index, Axis.REGISTER, self.context),)
        total = Var("total", self.sums.dtype, self.context.unique("total"))
        add = self.unit.dot(left, right, Load(self.sums, at), total)
        body = (*load_a, *load_b, add, Store(self.sums, at, total, span=self.span))
        return For(q, const(0), count, mine.around(body, self.span), span=self.span)

    def operand(self, x: Source, line: Expr, q: Var) -> tuple[tuple[Stmt, ...], Place]:
        """A word of neighbours along k: where it lies in memory, or gathered in registers."""
        t = self.context.var("t", self.width)
        index = x.element((line, binary("+", binary("*", q, self.width), t)))
        where = spot(self.context, x.buffer, index, {})
        size = self.width * x.buffer.dtype.bytes
        if where is not None and where.run(self.context, t, self.width) == self.width:
            return (), Place(where.buffer, where.at(self.context, t, const(0)), "r", aligned=size)
        word = Buffer("word", (self.width,), x.buffer.dtype, Space.LOCAL, number=self.context.unique("word"))
        fill = Store(word, (t,), placed(self.context, Load(x.buffer, index), {}), span=self.span)
        gather = (Alloc(word), For(t, const(0), self.width, (fill,), "unroll", span=self.span))
        return gather, Place(word, (const(0),), "r", aligned=size)


def width_of(unit: Dots | None, a: DType, b: DType, c: DType) -> int:
    """How many products one instruction adds; 0 if there is none for these types."""
    return 0 if unit is None else unit.width(a, b, c)
