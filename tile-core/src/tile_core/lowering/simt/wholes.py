"""Matrix products on matrices that move as wholes: a gemm and its chosen atom in, loads of matrices and multiplications out.

Where a subgroup keeps the elements of such a matrix is not known. So the accumulator becomes matrices before the products and
registers again after them, through shared memory: ``entering`` and ``leaving`` say where, ``settling`` moves both out of loops
and puts the steps in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...expr import Buffer, Expr, Load, Space, Var, binary, const, substitute, variables
from ...hardware import Atom
from ...inference.model import GemmChoice
from ...layout.f2 import BitMap
from ...layout.panels import row_major
from ...program import For, Gemm, Place, Region, Stmt, Store
from .context import Context
from .elementwise import Loop, element_index, lower_loop
from .instructions import WholeMatrices
from .matrix import Grid
from .settling import Crossing, entering, leaving
from .spots import spot


def whole_for(context: Context, s: Gemm, choice: GemmChoice | None) -> WholeMatrices | None:
    """The unit that does all of a gemm: its accumulator is a whole fragment, and no matrix reaches beyond a tile."""
    unit = context.instructions.wholes
    atom = None if choice is None else choice.atom
    if unit is None or choice is None or atom is None or atom.threads != context.plan.info.subgroup:
        return None
    fits = choice.c.box == choice.c.shape and s.a.shape[0 if s.transpose_a else 1] == _depth(s, atom)
    held = s.c.buffer.space is Space.FRAGMENT and s.c.whole
    return unit if fits and held and unit.has(atom) else None


def _depth(s: Gemm, atom: Atom) -> int:
    """The extent along k, rounded down to whole steps."""
    extent = s.a.shape[0 if s.transpose_a else 1]
    return extent // atom.shape[2] * atom.shape[2] if isinstance(extent, int) else -1


@dataclass(frozen=True)
class Window:
    """Where matrices of an operand begin: ``first`` for row 0 and column 0, ``step`` elements from one row to the next.

    ``turned``: it is columns that are ``step`` apart.
    """

    buffer: Buffer
    first: Expr
    step: int
    turned: bool


def lower_wholes(
    context: Context, s: Gemm, name: str, choice: GemmChoice, unit: WholeMatrices
) -> Iterator[Stmt]:
    """Every piece of the accumulator, for one step along k after the other."""
    atom = choice.atom
    assert atom is not None
    wm, wn = choice.warps
    grid = Grid(choice.c.box[0] // (atom.shape[0] * wm), choice.c.box[1] // (choice.n * wn), 0, 0, 0, 0)
    crossing = _crossing(context, s, choice, grid, unit)
    before: list[Stmt] = []
    group = binary("//", context.thread, atom.threads)
    row = binary("*", binary("%", group, wm), grid.m)
    column = binary("*", binary("//", group, wm), grid.n)
    a = _Operand(context, f"{name}.a", s.a, s.transpose_a, (atom.shape[0], atom.shape[2]), before)
    b = _Operand(context, f"{name}.b", s.b, s.transpose_b, (atom.shape[2], choice.n), before)
    yield from before
    matrices = crossing.matrices
    if s.clear:
        yield from (unit.clear(atom, Place(matrices, (const(n),), "w")) for n in range(grid.m * grid.n))
    else:
        yield entering(crossing)
    left = context.private("a_part", grid.m, s.a.dtype)
    right = context.private("b_part", grid.n, s.b.dtype)
    k = context.var("k", _depth(s, atom) // atom.shape[2])
    body: list[Stmt] = []
    for i in range(grid.m):
        body.append(a.load(unit, atom, "a", Place(left, (const(i),), "w"), (binary("+", row, i), k)))
    for j in range(grid.n):
        body.append(b.load(unit, atom, "b", Place(right, (const(j),), "w"), (k, binary("+", column, j))))
    for i in range(grid.m):
        for j in range(grid.n):
            place = Place(matrices, (const(i * grid.n + j),), "rw")
            body.append(unit.multiply(atom, place, Place(left, (const(i),)), Place(right, (const(j),))))
    yield For(k, const(0), _depth(s, atom) // atom.shape[2], tuple(body), span=s.span)
    yield leaving(crossing)


def _crossing(context: Context, s: Gemm, choice: GemmChoice, grid: Grid, unit: WholeMatrices) -> Crossing:
    """The accumulator as registers and as matrices, always the same for one fragment."""
    atom = choice.atom
    assert atom is not None
    regs = context.register_file(s.c.buffer.storage)
    found = context.crossings.get(regs)
    if found is None:
        matrices = context.private(f"{regs.name}_matrices", grid.m * grid.n, s.c.dtype)
        found = context.crossings[regs] = Crossing(regs, matrices, unit, atom, choice.n, grid.m, grid.n)
    return found


class _Operand:
    """An operand where single elements can be reached; one that is elsewhere, or not in straight rows, is copied first."""

    def __init__(
        self,
        context: Context,
        name: str,
        region: Region,
        turned: bool,
        shape: tuple[int, int],
        before: list[Stmt],
    ) -> None:
        self.context, self.turned, self.shape = context, turned, shape
        self.region = region
        self.vars = tuple(context.var(name, extent) for name, extent in zip("pq", shape, strict=True))
        self.blocks = (context.var("row", 1 << 20), context.var("column", 1 << 20))
        window = self.window() if region.buffer.space is Space.SHARED else None
        if window is None:
            self.region = _copied(context, name, region, before)
            window = self.window()
        assert window is not None, "rows of a plain tile are straight"
        self.found = window

    def window(self) -> Window | None:
        """By the address of an element of a matrix: the sum of a row's and a column's part, one of them with step 1."""
        at = [
            binary("+", binary("*", b, n), v)
            for b, n, v in zip(self.blocks, self.shape, self.vars, strict=True)
        ]
        index = element_index(self.region, (at[1], at[0]) if self.turned else (at[0], at[1]))
        found = spot(self.context, self.region.buffer, index, {})
        if found is None or found.swizzle != BitMap() or len(found.sums) != 1:
            return None
        ((form, _),) = found.sums
        down, along = (form.terms.get(v, 0) for v in self.vars)
        rest = replace(form, terms={t: n for t, n in form.terms.items() if t not in self.vars})
        if any(v in self.vars for t in rest.terms for v in variables(t)) or 1 not in (down, along):
            return None
        turned = along != 1
        return Window(found.buffer, self.context.sum(rest), along if turned else down, turned)

    def load(
        self, unit: WholeMatrices, atom: Atom, operand: str, into: Place, block: tuple[Expr, Expr]
    ) -> Stmt:
        """Load the matrix in this row and column of matrices."""
        w = self.found
        at = self.context.simple(substitute(w.first, dict(zip(self.blocks, block, strict=True))))
        return unit.load(atom, operand, into, Place(w.buffer, (at,)), w.step, w.turned)


def _copied(context: Context, name: str, region: Region, before: list[Stmt]) -> Region:
    """A copy of a region, row by row in shared memory."""
    extents = tuple(n for n in region.shape if isinstance(n, int))
    tile = context.placed_tile(
        name.replace(".", "_"), extents, region.dtype, Space.SHARED, row_major(extents)
    )
    vars: tuple[Var, ...] = tuple(context.var("i", n) for n in extents)
    copy = Store(tile, vars, Load(region.buffer, element_index(region, vars)), span=region.span)
    before += lower_loop(context, Loop(name, vars, extents, (copy,), region.span))
    zero = const(0)
    return Region(tile, (zero, zero), extents, (False, False), span=region.span)
