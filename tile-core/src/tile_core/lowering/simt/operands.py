"""Operands of matrix instructions: a region of a tile in, the registers that hold a piece of it for one step along k out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from ...dtypes import DType, dtype
from ...expr import Buffer, Expr, Load, Space, Var, binary, bitcast, const, minimum, select
from ...inference.rules.gemm import flipped
from ...layout.algebra import cut, equivalent, packed
from ...layout.layout import Axis, Iter, Layout, grouped, same
from ...layout.panels import XORED, row_major, span_tile
from ...program import For, Place, Region, Stmt, Store
from .context import Context, coordinate
from .elementwise import Loop, element_index, lower_loop
from .instructions import MatrixUnit
from .matrix_rows import ROW_BITS, Matrices, as_matrices, row_of
from .nest import iterations
from .places import placed
from .runs import runs_aligned
from .shuffled import shuffled


@dataclass(frozen=True)
class Operand:
    """One operand. ``layout``: all of it in registers, over (m, k) or (k, n); ``turned``: it is stored the other way round.

    ``k``: the dimension of ``layout`` that is summed over, ``depth`` of it in one step. ``rounded``: the operand type of the
    instruction, if values must be rounded to it. ``registers``: those that hold all of it, if each thread has what it needs;
    ``held``: where in them, if they are numbered otherwise.
    """

    region: Region
    layout: Layout
    turned: bool
    k: int
    depth: int
    rounded: str = ""
    registers: Buffer | None = None
    held: Layout | None = None

    @property
    def dtype(self) -> DType:
        return self.region.dtype

    @property
    def piece(self) -> Layout:
        """The registers of one step, numbered densely."""
        box = tuple(self.depth if n == self.k else e for n, e in enumerate(self.layout.box))
        part = cut(replace(self.layout, shape=self.layout.box), (0, 0), box)
        assert part is not None
        return replace(part, iters=packed(part.iters))

    @property
    def steps(self) -> int:
        """Steps along k that are full."""
        return self.layout.shape[self.k] // self.depth

    def index(self, at: Sequence[Expr]) -> tuple[Expr, ...]:
        """The index in the region's buffer of an element of the operand."""
        return element_index(self.region, (at[1], at[0]) if self.turned else (at[0], at[1]))


def operand(context: Context, name: str, region: Region, shape: Operand, before: list[Stmt]) -> Operand:
    """``shape`` with its region where single elements can be reached: what is in other registers is staged in ``before``."""
    buffer = region.buffer
    if buffer.space is not Space.FRAGMENT:
        return shape
    if region.whole and buffer.source is None:
        have = context.layout(buffer)
        have = flipped(have) if shape.turned else have
        if same(have, shape.layout):
            return replace(shape, registers=context.register_file(buffer))
        if have.box == shape.layout.box and equivalent(have, shape.layout):
            return replace(shape, registers=context.register_file(buffer), held=have)
        near = context.fragment(
            f"{buffer.name}_near", flipped(shape.layout) if shape.turned else shape.layout, buffer.dtype
        )
        moved = shuffled(context, buffer, near, region.span)
        if moved is not None:
            before += moved
            return replace(shape, registers=context.register_file(near))
    return replace(shape, region=_staged(context, name, region, before))


def _staged(context: Context, name: str, region: Region, before: list[Stmt]) -> Region:
    """A copy in shared memory of a region of a fragment."""
    extents = tuple(n for n in region.shape if isinstance(n, int))
    spans = [s for s in XORED if s and extents[1] * region.dtype.bits // 8 % s == 0]
    layout = (
        span_tile((extents[0], extents[1]), max(spans), region.dtype.bits) if spans else row_major(extents)
    )
    tile = context.placed_tile(name.replace(".", "_"), extents, region.dtype, Space.SHARED, layout)
    vars = tuple(context.var("i", n) for n in extents)
    copy = Store(tile, vars, Load(region.buffer, element_index(region, vars)), span=region.span)
    before += lower_loop(context, Loop(name, vars, extents, (copy,), region.span))
    zero = const(0)
    return Region(tile, (zero, zero), extents, (False, False), span=region.span)


def registers(
    context: Context, unit: MatrixUnit, x: Operand, into: Buffer, step: Expr, tail: bool
) -> Iterator[Stmt]:
    """Bring the operand's piece of one step into the private array ``into``; ``tail``: it reaches beyond the end of k."""
    found = None if tail else _matrices(context, unit, x)
    width = 1 if tail or found is not None else _run(context, x)
    if found is not None:
        yield from _by_matrices(context, unit, x, found, into, step)
    elif width > 1:
        yield from _by_runs(context, x, into, step, width)
    else:
        yield from _by_elements(context, unit, x, into, step, tail)
        return
    if x.rounded:
        r = context.var("r", prod(into.static_shape or (1,)))
        value = Load(into, (r,))
        body = tuple(_set(context, unit, x, into, r, value))
        yield For(r, const(0), prod(into.static_shape or (1,)), body, "unroll")


def _matrices(context: Context, unit: MatrixUnit, x: Operand) -> Matrices | None:
    """How the piece is loaded by matrices, if it can be."""
    if not unit.counts or x.registers is not None or x.region.buffer.space is not Space.SHARED:
        return None
    bits = x.dtype.bits
    for along in (0, 1):
        found = as_matrices(x.piece, along, bits, context.plan.info.subgroup)
        padded = along != x.k and x.layout.box[along] > x.layout.shape[along]
        cut_off = padded and x.layout.shape[along] % (ROW_BITS // bits)
        stored = 1 - along if x.turned else along
        if found is not None and not cut_off and runs_aligned(context, x.region, stored, ROW_BITS // bits):
            return found
    return None


def _by_matrices(
    context: Context, unit: MatrixUnit, x: Operand, matrices: Matrices, into: Buffer, step: Expr
) -> Iterator[Stmt]:
    """Loads of as many matrices at once as there can be; those of a padded edge read the last row again."""
    done = 0
    for count in unit.counts:
        rounds = (matrices.count - done) // count
        if rounds:
            n = context.var("x", rounds) if rounds > 1 else const(0)
            first = context.simple(binary("+", binary("*", n, count), done))
            at = _kept_inside(x, matrices, row_of(context, matrices, first, count))
            at = _moved(context, x, at, step)
            row = placed(context, Load(x.region.buffer, x.index(at)), {})
            assert isinstance(row, Load)
            target = Place(into, (context.simple(binary("*", first, matrices.per)),), "w")
            source = Place(row.buffer, row.indices, "r", window=True)
            load = (unit.load(count, matrices.transposed, target, source),)
            yield from (For(n, const(0), rounds, load, "unroll"),) if isinstance(n, Var) else load
        done += rounds * count


def _kept_inside(x: Operand, matrices: Matrices, at: tuple[Expr, Expr]) -> tuple[Expr, ...]:
    """Rows beyond the edge of the operand are results that nobody keeps: any row of the tile will do for them."""
    out = list(at)
    for d, (have, box) in enumerate(zip(x.layout.shape, x.layout.box, strict=True)):
        if d != x.k and box > have:
            last = have - (1 if d == matrices.row else ROW_BITS // x.dtype.bits)
            out[d] = minimum(at[d], last)
    return tuple(out)


def _moved(context: Context, x: Operand, at: Sequence[Expr], step: Expr) -> tuple[Expr, ...]:
    """The element at a place of the piece of one step."""
    far = binary("*", step, x.depth)
    return tuple(context.simple(binary("+", e, far)) if d == x.k else e for d, e in enumerate(at))


def _run(context: Context, x: Operand) -> int:
    """How many neighbours along k that a thread needs it can read at once; 1: they do not lie side by side."""
    moves, groups = context.instructions.vectors, grouped(x.piece)
    if (
        moves is None
        or groups is None
        or x.registers is not None
        or x.region.buffer.space is not Space.SHARED
    ):
        return 1
    last = groups[x.k][-1] if groups[x.k] else None
    if last is None or last.axis is not Axis.REGISTER or last.stride != 1:
        return 1
    stored = 1 - x.k if x.turned else x.k
    for size in moves.widths:
        width = size * 8 // x.dtype.bits
        if width > 1 and last.extent % width == 0 and runs_aligned(context, x.region, stored, width):
            return width
    return 1


def _by_runs(context: Context, x: Operand, into: Buffer, step: Expr, width: int) -> Iterator[Stmt]:
    """Vectors along k, one after the other."""
    moves, piece = context.instructions.vectors, x.piece
    groups = grouped(piece)
    assert moves is not None and groups is not None
    shape = tuple(n // width if d == x.k else n for d, n in enumerate(piece.shape))
    last = groups[x.k][-1]
    short = (*groups[x.k][:-1], Iter(last.extent // width, width, Axis.REGISTER))
    iters = tuple(it for d, g in enumerate(groups) for it in (short if d == x.k else g))
    mine = iterations(context, replace(piece, shape=shape, box=shape, iters=iters), shape)
    first = [binary("*", i, width) if d == x.k else i for d, i in enumerate(mine.index)]
    register = coordinate(piece, first, Axis.REGISTER, context)
    source = _element(context, x, _moved(context, x, first, step))
    assert isinstance(source, Load)
    size = width * x.dtype.bits // 8
    to = Place(into, (register,), "w", aligned=size)
    move = moves.move(to, Place(source.buffer, source.indices, "r", aligned=size), size)
    yield from mine.around((move,), x.region.span)


def _by_elements(
    context: Context, unit: MatrixUnit, x: Operand, into: Buffer, step: Expr, tail: bool
) -> Iterator[Stmt]:
    """One element after the other; zero beyond the end of k, where the other operand may hold anything."""
    mine = iterations(context, x.piece, x.piece.shape)
    register = coordinate(x.piece, mine.index, Axis.REGISTER, context)
    at = _moved(context, x, mine.index, step)
    value = _element(context, x, at)
    if tail:
        value = select(binary("<", at[x.k], x.layout.shape[x.k]), value, const(0, x.dtype))
    yield from mine.around(tuple(_set(context, unit, x, into, register, value)), x.region.span)


def _element(context: Context, x: Operand, at: Sequence[Expr]) -> Expr:
    if x.registers is not None:
        return Load(x.registers, (coordinate(x.held or x.layout, at, Axis.REGISTER, context),))
    inside = tuple(
        minimum(e, have - 1) if d != x.k and box > have else e
        for d, (e, have, box) in enumerate(zip(at, x.layout.shape, x.layout.box, strict=True))
    )
    return placed(context, Load(x.region.buffer, x.index(inside), span=x.region.span), {})


def _set(
    context: Context, unit: MatrixUnit, x: Operand, into: Buffer, register: Expr, value: Expr
) -> Iterator[Stmt]:
    """Store a value into a register, rounded if the instruction reads fewer bits."""
    if not x.rounded:
        yield Store(into, (register,), value)
        return
    short = Var("rounded", dtype("uint32"), context.unique("rounded"))
    call = unit.rounded(value, x.rounded, short)
    assert call is not None
    yield call
    yield Store(into, (register,), bitcast(short, x.dtype))
