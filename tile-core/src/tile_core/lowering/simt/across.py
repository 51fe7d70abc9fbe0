"""Ops that combine elements of different threads: reductions, scans, votes. Partial results meet in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...dtypes import INT32, DType
from ...expr import Buffer, Expr, Load, Var, binary, call, cast, const, select
from ...layout.layout import Layout
from ...layout.partition import partitions
from ...program import Bind, For, If, Quantify, Reduce, Region, Scan, Stmt, Store
from .context import Context, linear_index
from .elementwise import Loop, element_index, lower_loop, write
from .nest import conjunction, iterations

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


def lower_reduce(context: Context, name: str, s: Reduce) -> tuple[Stmt, ...]:
    """Stage the source in shared memory, then let each thread fold whole lines and hand the results on.

    The source region is written row-major to scratch; ``lines`` are dealt to the threads; the result goes back through scratch to
    wherever the destination is.
    """
    shape = _numbers(s.src)
    out, source = _into_scratch(context, name, s.src, shape)
    work = _accumulator(s, s.dst.dtype)
    lines = tuple(n for k, n in enumerate(shape) if k != s.axis)
    result = context.scratch(f"{name}_result", max(1, prod(lines)), work)
    body = _fold(context, s, source, shape, result, work)
    return (*out, *body, *_hand_on(context, name, s, result, lines, work))


def _numbers(r: Region) -> tuple[int, ...]:
    return tuple(n for n in r.shape if isinstance(n, int))


def _into_scratch(
    context: Context, name: str, r: Region, shape: Sequence[int]
) -> tuple[tuple[Stmt, ...], Buffer]:
    flat = context.scratch(f"{name}_source", prod(shape), r.dtype)
    vars = tuple(context.var("i", n) for n in shape)
    body = (Store(flat, (linear_index(vars, shape),), Load(r.buffer, element_index(r, vars), span=r.span)),)
    return lower_loop(context, Loop(name, vars, tuple(shape), body, r.span)), flat


def _accumulator(s: Reduce, to: DType) -> DType:
    """The type that partial results are kept in: sums of narrow floats are made in float32 and rounded once."""
    from ...dtypes import FLOAT32

    return FLOAT32 if s.kind in ("sum", "abssum") and to.is_float and to.bits < 32 else to


def _fold(
    context: Context, s: Reduce, source: Buffer, shape: Sequence[int], result: Buffer, work: DType
) -> tuple[Stmt, ...]:
    lines = tuple(n for k, n in enumerate(shape) if k != s.axis)
    mine = iterations(context, _dealt_lines(context, lines), lines or (1,))
    acc = context.private("acc", 1, work)
    k = context.var("k", shape[s.axis])
    index = list(mine.index[: len(lines)])
    index.insert(s.axis, k)
    value = cast(Load(source, (context.simple(linear_index(index, shape)),)), work)
    if s.kind in ("absmax", "abssum") and work.kind != "uint":
        value = call("abs", value)
    old = Load(acc, (const(0),))
    at = context.simple(linear_index(mine.index[: len(lines)], lines)) if lines else const(0)
    start = const(START[s.kind], work) if s.kind in START else None
    step: tuple[Stmt, ...] = (
        Store(acc, (const(0),), combined(s.kind, old, value, s.propagate_nan), span=s.span),
    )
    first: tuple[Stmt, ...]
    if start is not None:
        first = (Store(acc, (const(0),), start), For(k, const(0), shape[s.axis], step, span=s.span))
    else:
        begin = substitute_var(value, k, const(0))
        first = (
            Store(acc, (const(0),), begin),
            For(k, const(1), shape[s.axis] - 1, step, span=s.span),
        )
    body = (*first, Store(result, (at,), Load(acc, (const(0),)), span=s.span))
    return mine.around(body, s.span)


def substitute_var(x: Expr, var: Var, value: Expr) -> Expr:
    from ...expr import substitute

    return substitute(x, {var: value})


def combined(kind: str, a: Expr, b: Expr, propagate_nan: bool = False) -> Expr:
    """``a`` and ``b`` folded; max and min skip NaN unless it is to propagate."""
    if kind in ("any", "all"):
        return binary("or" if kind == "any" else "and", a, b)
    out = binary(OPERATOR[kind], a, b)
    if propagate_nan and a.dtype.is_float and OPERATOR[kind] in ("max", "min"):
        out = select(call("isnan", a), a, select(call("isnan", b), b, out, lazy=False), lazy=False)
    return out


def _dealt_lines(context: Context, lines: tuple[int, ...]) -> Layout:
    return partitions(lines or (1,), context.threads)[0]


def _hand_on(
    context: Context, name: str, s: Reduce, result: Buffer, lines: tuple[int, ...], work: DType
) -> tuple[Stmt, ...]:
    shape = _numbers(s.dst)
    vars = tuple(context.var("i", n) for n in shape)
    kept = len(shape) == len(lines) + 1
    inner = tuple(v for n, v in enumerate(vars) if not (kept and n == s.axis)) if lines else ()
    value: Expr = Load(result, (linear_index(inner, lines) if lines else const(0),))
    if not s.clear:
        value = combined(
            s.kind, cast(Load(s.dst.buffer, element_index(s.dst, vars)), work), value, s.propagate_nan
        )
    loop = Loop(f"{name}.store", vars, shape, write(s.dst, vars, cast(value, s.dst.dtype), s.span), s.span)
    return lower_loop(context, loop)


def lower_scan(context: Context, name: str, s: Scan) -> tuple[Stmt, ...]:
    """Each thread scans whole lines in shared memory."""
    shape = _numbers(s.src)
    out, source = _into_scratch(context, name, s.src, shape)
    lines = tuple(n for k, n in enumerate(shape) if k != s.axis)
    mine = iterations(context, _dealt_lines(context, lines), lines or (1,))
    count = shape[s.axis]
    k = context.var("k", count)
    work = s.dst.dtype
    acc = context.private("acc", 1, work)
    position: Expr = binary("-", count - 1, k) if s.reverse else k
    index = list(mine.index[: len(lines)])
    index.insert(s.axis, position)
    at = context.simple(linear_index(index, shape))
    value = cast(Load(source, (at,)), work)
    old = Load(acc, (const(0),))
    joined = combined(s.kind, old, value)
    first = binary("==", k, 0)
    step = (
        Store(acc, (const(0),), select(first, value, joined), span=s.span),
        Store(source, (at,), cast(Load(acc, (const(0),)), source.dtype), span=s.span),
    )
    start = Store(acc, (const(0),), const(0, work))
    line: tuple[Stmt, ...] = (start, For(k, const(0), count, step, span=s.span))
    if mine.first:  # a line is rewritten in place: of the threads that share one, one alone
        line = (If(conjunction(mine.first), line, span=s.span),)
    body = mine.around(line, s.span)
    vars = tuple(context.var("i", n) for n in shape)
    copy = write(s.dst, vars, cast(Load(source, (linear_index(vars, shape),)), s.dst.dtype), s.span)
    return (*out, *body, *lower_loop(context, Loop(f"{name}.store", vars, shape, copy, s.span)))


def lower_quantify(context: Context, name: str, s: Quantify) -> tuple[Stmt, ...]:
    """Any or all: the elements meet in shared memory, every thread folds them for itself."""
    shape = _numbers(s.src)
    out, source = _into_scratch(context, name, s.src, shape)
    acc = context.private(name, 1, INT32)
    k = context.var("k", prod(shape))
    test = binary("!=", Load(source, (k,)), const(0, source.dtype))
    old = binary("!=", Load(acc, (const(0),)), 0)
    value = select(combined(s.kind, old, test), const(1), const(0), lazy=False)
    start = Store(acc, (const(0),), const(int(s.kind == "all")))
    loop = For(k, const(0), prod(shape), (Store(acc, (const(0),), value, span=s.span),), span=s.span)
    return (*out, start, loop, Bind(s.result, binary("!=", Load(acc, (const(0),)), 0), span=s.span))
