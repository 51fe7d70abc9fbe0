"""Matrix products by instructions of one subgroup: a gemm and its chosen atom in, loads of operands and multiplications out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...dtypes import dtype
from ...expr import Buffer, Expr, Load, Space, Var, binary, const
from ...hardware import Atom
from ...inference.model import GemmChoice
from ...layout.layout import Axis, Layout, same
from ...program import For, Gemm, Place, Region, Stmt, Store
from .context import Context
from .elementwise import Loop, element_index, lower_loop
from .instructions import MatrixUnit
from .operands import Operand, operand, registers

UNROLLED = 1024  # multiplications that are written out one after the other at most


def unit_for(context: Context, choice: GemmChoice | None) -> MatrixUnit | None:
    """The unit that multiplies by the chosen instruction, if it is one of a subgroup with operands in registers."""
    unit = context.instructions.matrix
    atom = None if choice is None else choice.atom
    if unit is None or atom is None or atom.threads != context.plan.info.subgroup or not unit.has(atom):
        return None
    return unit if atom.a is not None and atom.b is not None else None


@dataclass(frozen=True)
class Grid:
    """How often the instruction is repeated by one subgroup along m, n and k, and the registers of a thread for a piece."""

    m: int
    n: int
    k: int
    a: int
    b: int
    c: int

    @staticmethod
    def of(choice: GemmChoice, atom: Atom) -> Grid:
        assert choice.a is not None and choice.b is not None and atom.a is not None and atom.b is not None
        height, _, depth = atom.shape
        wm, wn = choice.warps
        size = [layout.cosize(Axis.REGISTER) for layout in (atom.a, atom.b, atom.c(choice.n))]
        size[1] *= choice.n // atom.b.shape[1]
        m, n = choice.c.box
        return Grid(m // (height * wm), n // (choice.n * wn), choice.a.box[1] // depth, *size)


def lower_products(
    context: Context, name: str, s: Gemm, choice: GemmChoice, unit: MatrixUnit
) -> tuple[Stmt, ...]:
    """All steps along k: operands into registers, then every piece of the accumulator. What k lacks is multiplied as zero."""
    atom = choice.atom
    assert atom is not None and choice.a is not None and choice.b is not None
    before: list[Stmt] = []
    depth, grid = atom.shape[2], Grid.of(choice, atom)
    a = Operand(s.a, choice.a, s.transpose_a, 1, depth, _rounded(s.a, atom.types[0]))
    b = Operand(s.b, choice.b, s.transpose_b, 0, depth, _rounded(s.b, atom.types[1]))
    a = operand(context, f"{name}.a", s.a, a, before)
    b = operand(context, f"{name}.b", s.b, b, before)
    acc, load, after = _accumulator(context, name, s, choice.c)
    work = _Products(context, unit, atom, grid, acc)
    clear = work.cleared() if s.clear else load
    return (*before, *clear, *work.all_steps(a, b), *after)


def _rounded(region: Region, to: str) -> str:
    return "" if dtype(to) == region.dtype else to


@dataclass(frozen=True)
class _Products:
    context: Context
    unit: MatrixUnit
    atom: Atom
    grid: Grid
    acc: Buffer

    def cleared(self) -> tuple[Stmt, ...]:
        count = self.grid.m * self.grid.n * self.grid.c
        return _each(self.context, "r", count, lambda r: (Store(self.acc, (r,), const(0, self.acc.dtype)),))

    def all_steps(self, a: Operand, b: Operand) -> tuple[Stmt, ...]:
        """The full steps, then one that reaches beyond the end of k."""
        held = a.registers is not None or b.registers is not None
        few = self.grid.m * self.grid.n * self.grid.k <= UNROLLED
        kind = "unroll" if held or few else "serial"
        full = _each(self.context, "k", a.steps, lambda k: self.step(a, b, k, False), kind)
        rest = self.step(a, b, const(a.steps), True) if a.steps < self.grid.k else ()
        return (*full, *rest)

    def step(self, a: Operand, b: Operand, k: Expr, tail: bool) -> tuple[Stmt, ...]:
        """One step along k."""
        load_a, left = self.pieces(a, "a", k, self.grid.a, tail)
        load_b, right = self.pieces(b, "b", k, self.grid.b, tail)

        def row(i: Expr) -> tuple[Stmt, ...]:
            return _each(self.context, "j", self.grid.n, lambda j: (self.multiply(i, j, left, right),))

        return (*load_a, *load_b, *_each(self.context, "i", self.grid.m, row))

    def multiply(
        self, i: Expr, j: Expr, left: Callable[[Expr], Place], right: Callable[[Expr], Place]
    ) -> Stmt:
        number = binary("+", binary("*", i, self.grid.n), j)
        at = self.context.simple(binary("*", number, self.grid.c))
        return self.unit.multiply(self.atom, Place(self.acc, (at,), "rw"), left(i), right(j))

    def pieces(
        self, x: Operand, name: str, k: Expr, size: int, tail: bool
    ) -> tuple[tuple[Stmt, ...], Callable[[Expr], Place]]:
        """Loads of an operand's registers for a step, and where the piece of a row or column of instructions begins."""
        held = x.registers
        if held is not None and x.held is None and not tail and not x.rounded:

            def in_place(i: Expr) -> Place:
                number = binary("+", binary("*", i, self.grid.k), k)
                return Place(held, (self.context.simple(binary("*", number, size)),), "r")

            return (), in_place
        into = self.context.private(f"{name}_part", x.piece.cosize(Axis.REGISTER), x.dtype)
        loads = tuple(registers(self.context, self.unit, x, into, k, tail))
        return loads, lambda i: Place(into, (self.context.simple(binary("*", i, size)),), "r")


def _each(
    context: Context, name: str, count: int, body: Callable[[Expr], tuple[Stmt, ...]], kind: str = "unroll"
) -> tuple[Stmt, ...]:
    """``body`` for every number below ``count``."""
    if count <= 1:
        return body(const(0)) if count else ()
    var = context.var(name, count)
    return (For(var, const(0), count, body(var), kind),)


def _accumulator(
    context: Context, name: str, s: Gemm, layout: Layout
) -> tuple[Buffer, tuple[Stmt, ...], tuple[Stmt, ...]]:
    """Registers of the sums, and what brings the old values there and the new ones back where they belong."""
    buffer = s.c.buffer
    if buffer.space is Space.FRAGMENT and s.c.whole and same(context.layout(buffer), layout):
        return context.register_file(buffer.storage), (), ()
    tile = context.placed_tile(f"{name}_sums", layout.shape, s.c.dtype, Space.FRAGMENT, layout)
    old = tuple(_copied(context, f"{name}.c.load", s.c, tile, into_tile=True))
    new = tuple(_copied(context, f"{name}.c.store", s.c, tile, into_tile=False))
    return context.register_file(tile), old, new


def _copied(context: Context, name: str, r: Region, tile: Buffer, *, into_tile: bool) -> Iterator[Stmt]:
    extents = tuple(n for n in r.shape if isinstance(n, int))
    vars: tuple[Var, ...] = tuple(context.var("i", n) for n in extents)
    there = element_index(r, vars)
    if into_tile:
        step = Store(tile, vars, Load(r.buffer, there, span=r.span), span=r.span)
    else:
        step = Store(r.buffer, there, Load(tile, vars), span=r.span)
    yield from lower_loop(context, Loop(name, vars, extents, (step,), r.span))
