"""Matrix products: by instructions of a subgroup, else by plain multiply-adds of the thread that holds an element of the sums."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ...expr import Buffer, Expr, Load, Space, binary, cast, const
from ...program import For, Gemm, Region, Stmt, Store
from .context import Context, linear_index
from .dots import DotProducts, Places, Source, width_of
from .elementwise import Loop, element_index, lower_loop, staged_loop
from .matrix import lower_products, unit_for
from .nest import iterations
from .wholes import lower_wholes, whole_for


def lower_gemm(context: Context, name: str, s: Gemm) -> tuple[Stmt, ...]:
    """The chosen instructions, or multiply-adds: operands are read from shared memory, those that are not there are staged.

    Products are summed in the type of c.
    """
    choice = context.plan.atoms.get(name)
    unit = unit_for(context, choice)
    if choice is not None and unit is not None:
        return lower_products(context, name, s, choice, unit)
    whole = whole_for(context, s, choice)
    if choice is not None and whole is not None:
        return tuple(lower_wholes(context, s, name, choice, whole))
    before: list[Stmt] = []
    a, at_a = _operand(context, f"{name}.a", s.a, before)
    b, at_b = _operand(context, f"{name}.b", s.b, before)
    m, n = (e for e in s.c.shape if isinstance(e, int))
    k_extent = s.a.shape[0 if s.transpose_a else 1]
    i, j, k = (
        context.var("i", m),
        context.var("j", n),
        context.var("k", k_extent if isinstance(k_extent, int) else 1 << 31),
    )
    where = element_index(s.c, (i, j))
    left = Load(a, at_a((k, i) if s.transpose_a else (i, k)), span=s.a.span)
    right = Load(b, at_b((j, k) if s.transpose_b else (k, j)), span=s.b.span)
    work = s.c.dtype
    product = binary("*", cast(left, work), cast(right, work))
    acc = Load(s.c.buffer, where, span=s.c.span)
    zero = Store(s.c.buffer, where, const(0, work), span=s.span)
    step = Store(s.c.buffer, where, binary("+", acc, product), span=s.span)
    sums = For(k, const(0), k_extent, (step,), span=s.span)
    loop = Loop(name, (i, j), (m, n), (*((zero,) if s.clear else ()), sums), s.span)
    layout = context.layout(s.c.buffer) if _held_whole(context, s) else None
    if layout is None or layout.shape != (m, n):
        shared = s.c.buffer.space is Space.SHARED
        return (*before, *lower_loop(context, replace(loop, name=f"{name}.c" if shared else name)))
    # The accumulator is where the iterations are, so nothing is staged; with the summed index outermost one step is a
    # run of independent multiply-adds on registers, whatever their number.
    held = frozenset((s.c.buffer.storage,))
    mine = iterations(context, layout, layout.shape)
    clear = staged_loop(context, replace(loop, body=(zero,)), mine, held) if s.clear else ()
    steps = staged_loop(context, replace(loop, body=(step,)), mine, held)
    dots, width = context.instructions.dots, width_of(context.instructions.dots, a.dtype, b.dtype, work)
    if dots is None or not width or not isinstance(k_extent, int):
        return (*before, *clear, replace(sums, body=steps))
    unit = DotProducts(context, dots, width, layout, context.register_file(s.c.buffer.storage), s.span)
    rows = Source(a, lambda at: at_a((at[1], at[0]) if s.transpose_a else at))
    columns = Source(b, lambda at: at_b(at if s.transpose_b else (at[1], at[0])))
    full, rest = divmod(k_extent, width)
    last = replace(sums, start=const(full * width), extent=rest, body=steps)
    words = (unit.steps(rows, columns, full),) if full else ()
    return (*before, *clear, *words, *((last,) if rest else ()))


def _held_whole(context: Context, s: Gemm) -> bool:
    """Whether the accumulator is a whole fragment; a part of a tile in shared memory is dealt to the threads."""
    return s.c.buffer.space is Space.FRAGMENT and s.c.buffer.storage in context.plan.layouts and s.c.whole


def _operand(context: Context, name: str, r: Region, before: list[Stmt]) -> tuple[Buffer, Places]:
    """The buffer to read an operand from, and the index of an element of the region in it."""
    if r.buffer.space is not Space.FRAGMENT:
        return r.buffer, lambda at: element_index(r, at)
    shape = tuple(n for n in r.shape if isinstance(n, int))
    flat: Buffer = context.scratch(f"{name.replace('.', '_')}", prod(shape), r.dtype)
    vars = tuple(context.var("i", n) for n in shape)
    copy = (Store(flat, (linear_index(vars, shape),), Load(r.buffer, element_index(r, vars))),)
    before += lower_loop(context, Loop(name, vars, shape, copy, r.span))

    def index(at: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return (linear_index(at, shape),)

    return flat, index
