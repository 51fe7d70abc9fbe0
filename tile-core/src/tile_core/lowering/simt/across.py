"""Ops that combine elements of different threads: reductions, scans, votes."""

from __future__ import annotations

from ...dtypes import FLOAT32, INT32, DType
from ...expr import Buffer, Expr, Load, Space, binary, call, cast, const, select
from ...inference.problem import is_whole
from ...inference.rules.reduce import result_layout
from ...layout.algebra import mismatch
from ...layout.layout import Axis, grouped
from ...layout.partition import partitions
from ...program import Bind, For, Quantify, Reduce, Region, Scan, Stmt, Store
from .context import Context, coordinate
from .elementwise import Loop, element_index, staged_loop, write
from .folding import Fold, folded
from .nest import iterations
from .places import placed
from .scanning import Prefix, scanned

START: dict[str, float] = {"sum": 0, "abssum": 0, "bitor": 0, "bitxor": 0, "bitand": -1, "any": 0, "all": 1}
OPERATOR = {
    "sum": "+",
    "abssum": "+",
    "max": "max",
    "min": "min",
    "absmax": "max",
    "bitand": "&",
    "bitor": "|",
    "bitxor": "^",
}
INFINITY = float("inf")


def lower_reduce(context: Context, name: str, s: Reduce) -> tuple[Stmt, ...]:
    """Each thread combines the elements that it holds; threads that share a line then combine what they have."""
    before, source = _held(context, name, s.src)
    layout = context.layout(source)
    axis = s.axis % len(layout.shape)
    work = _summed_in(s.kind, s.dst.dtype)

    def value(index: tuple[Expr, ...]) -> Expr:
        x = cast(placed(context, Load(source, index), {}), work)
        return call("abs", x) if s.kind in ("absmax", "abssum") and work.kind != "uint" else x

    def join(a: Expr, b: Expr) -> Expr:
        return cast(combined(s.kind, a, b, s.propagate_nan), work)

    fold = Fold(value, join, _nothing(s.kind, work, s.propagate_nan))
    result = result_layout(layout, axis, len(_numbers(s.dst)) == len(layout.shape))
    assert result is not None
    made = context.fragment(f"{name}_part", result, work)
    apart = name in context.apart
    steps = folded(context, layout, (axis,), context.register_file(made), fold, s.span, apart)
    return (*before, *steps, *_hand_on(context, name, s, made, work))


def _nothing(kind: str, work: DType, propagate_nan: bool = False) -> Expr:
    """What changes nothing: of max and min of floats NaN, which they skip."""
    if kind in START:
        return const(START[kind], work)
    smallest = kind in ("max", "absmax")
    if work.is_float:
        return const(float("nan") if not propagate_nan else -INFINITY if smallest else INFINITY, work)
    return const(work.integers[0] if smallest else work.integers[-1], work)


def _held(context: Context, name: str, r: Region) -> tuple[tuple[Stmt, ...], Buffer]:
    """A fragment with the elements of a region, whose layout has digits for each dimension: itself, or a copy."""
    buffer = r.buffer
    if (
        buffer.space is Space.FRAGMENT
        and buffer.source is None
        and is_whole(r)
        and grouped(context.layout(buffer))
    ):
        return (), buffer
    shape = _numbers(r)
    layout = context.plan.operands.get(f"{name}.source")
    if layout is None or layout.shape != shape or grouped(layout) is None:
        layout = partitions(shape, context.threads)[0]
    copy = context.fragment(f"{name}_source", layout, r.dtype)
    vars = tuple(context.var("i", n) for n in shape)
    body = (Store(copy, vars, Load(r.buffer, element_index(r, vars), span=r.span)),)
    loop = Loop(name, vars, shape, body, r.span)
    return staged_loop(context, loop, iterations(context, layout, shape), frozenset((copy,))), copy


def _numbers(r: Region) -> tuple[int, ...]:
    return tuple(n for n in r.shape if isinstance(n, int))


def _summed_in(kind: str, to: DType) -> DType:
    """The type that partial results are kept in: sums of narrow floats are made in float32 and rounded once."""
    return FLOAT32 if kind in ("sum", "abssum") and to.is_float and to.bits < 32 else to


def combined(kind: str, a: Expr, b: Expr, propagate_nan: bool = False) -> Expr:
    """``a`` and ``b`` folded; max and min skip NaN unless it is to propagate."""
    if kind in ("any", "all"):
        return binary("or" if kind == "any" else "and", a, b)
    out = binary(OPERATOR[kind], a, b)
    if propagate_nan and a.dtype.is_float and OPERATOR[kind] in ("max", "min"):
        out = select(call("isnan", a), a, select(call("isnan", b), b, out, lazy=False), lazy=False)
    return out


def _hand_on(context: Context, name: str, s: Reduce, made: Buffer, work: DType) -> tuple[Stmt, ...]:
    """Results to the destination: registers to registers where the threads that want them have them."""
    shape = _numbers(s.dst)
    vars = tuple(context.var("i", n) for n in shape)
    value: Expr = Load(made, vars or (const(0),))
    if not s.clear:
        old = cast(Load(s.dst.buffer, element_index(s.dst, vars)), work)
        value = combined(s.kind, old, value, s.propagate_nan)
    loop = Loop(
        f"{name}.store", vars, shape, write(context, s.dst, vars, cast(value, s.dst.dtype), s.span), s.span
    )
    return _given_out(context, loop, s.dst, made)


def _given_out(context: Context, loop: Loop, dst: Region, made: Buffer) -> tuple[Stmt, ...]:
    """A loop that stores the fragment ``made`` to ``dst``: by the holders of ``dst`` if they have it, else by those of ``made``."""
    shape = _numbers(dst)
    have, to = context.layout(made), dst.buffer
    if to.space is Space.FRAGMENT and to.source is None and is_whole(dst):
        wanted = context.layout(to)
        if shape == wanted.shape and mismatch(have, wanted) is None:
            return staged_loop(context, loop, iterations(context, wanted, shape), frozenset((to, made)))
    return staged_loop(context, loop, iterations(context, have, have.shape), frozenset((made,)))


def lower_scan(context: Context, name: str, s: Scan) -> tuple[Stmt, ...]:
    """Each thread scans what it holds of a line; threads that share a line then add what comes before."""
    before, source = _held(context, name, s.src)
    layout, work = context.layout(source), _summed_in(s.kind, s.dst.dtype)
    held = context.fragment(f"{name}_prefix", layout, work)
    file = context.register_file(held)
    start = _nothing(s.kind, work)
    k = context.var("k", layout.cosize(Axis.REGISTER))
    clear = For(k, const(0), layout.cosize(Axis.REGISTER), (Store(file, (k,), start, span=s.span),), "unroll")
    mine = iterations(context, layout, layout.shape)
    value = cast(placed(context, Load(source, mine.index), {}), work)
    fill = mine.around(
        (Store(file, (coordinate(layout, mine.index, Axis.REGISTER, context),), value, span=s.span),)
    )

    def join(a: Expr, b: Expr) -> Expr:
        return combined(s.kind, a, b)

    steps = scanned(context, held, s.axis % len(layout.shape), Prefix(join, start, s.reverse), s.span)
    vars = tuple(context.var("i", n) for n in layout.shape)
    result = write(context, s.dst, vars, cast(Load(held, vars), s.dst.dtype), s.span)
    loop = Loop(f"{name}.store", vars, layout.shape, result, s.span)
    return (*before, clear, *fill, *steps, *_given_out(context, loop, s.dst, held))


def lower_quantify(context: Context, name: str, s: Quantify) -> tuple[Stmt, ...]:
    """Any or all: every thread of the block has the answer."""
    before, source = _held(context, name, s.src)
    layout = context.layout(source)

    def value(index: tuple[Expr, ...]) -> Expr:
        return cast(binary("!=", placed(context, Load(source, index), {}), const(0, source.dtype)), INT32)

    def join(a: Expr, b: Expr) -> Expr:
        return binary("|" if s.kind == "any" else "&", a, b)

    fold = Fold(value, join, const(int(s.kind == "all")), everyone=True)
    parts = context.private(name, 1, INT32)
    steps = folded(context, layout, range(len(layout.shape)), parts, fold, s.span)
    return (*before, *steps, Bind(s.result, binary("!=", Load(parts, (const(0),)), 0), span=s.span))
