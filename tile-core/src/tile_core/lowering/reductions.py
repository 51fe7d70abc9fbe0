"""Reductions along one axis, prefix scans, and tests of a whole tile."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _tvm as tvm
from ..dtypes import BOOL, DType
from ..program import Quantify, Reduce, Scan
from . import arithmetic, numbers
from .nodes import Node, i64, known, loop, subtract
from .regions import Box
from .scope import Scope
from .staging import over, stage

COMBINE = {
    "sum": "+",
    "abssum": "+",
    "max": "max",
    "absmax": "max",
    "min": "min",
    "bitand": "&",
    "bitor": "|",
    "bitxor": "^",
    "any": "or",
    "all": "and",
}


def reduce(scope: Scope, s: Reduce) -> list[Node]:
    source, target = Box.of(scope, s.src), Box.of(scope, s.dst)
    if s.axis % len(source.shape) == len(source.shape) - 1 and _vector_kind(s, target.dtype):
        return _along_rows(scope, s, source, target)
    return _across(scope, s, source, target)


def _vector_kind(s: Reduce, to: DType) -> bool:
    return to.is_float and s.kind in ("sum", "abssum", "max", "absmax", "min")


def _working_type(kind: str, to: DType) -> DType:
    return BOOL if kind in ("any", "all") else to


def _without(local: Sequence[Node], axis: int, rank: int) -> list[Node]:
    """The place in the result: the axis is gone, or has extent 1."""
    kept = [x for d, x in enumerate(local) if d != axis]
    return kept if rank == len(kept) else [*kept[:axis], i64(0), *kept[axis:]]


def _combined(kind: str, a: Node, b: Node, t: DType, propagate: bool) -> Node:
    """One step; narrow floats are summed in float32 and rounded at the end."""
    if kind in ("sum", "abssum") and t.is_float:
        return tvm.Add(a, b)
    if t.is_float and propagate and COMBINE[kind] in ("max", "min"):
        return tvm.call_pure(numbers.held(t), f"tile.{COMBINE[kind]}imum.{numbers.held(t)}", a, b)
    return arithmetic.binary(COMBINE[kind], a, b, t)


def _element(kind: str, source: Box, at: Sequence[Node], t: DType) -> Node:
    value = source.read_as(at, t)
    return arithmetic.function("abs", [value], t) if kind.startswith("abs") and not t.is_bool else value


def _along_rows(scope: Scope, s: Reduce, source: Box, target: Box) -> list[Node]:
    """The last axis: each row is reduced by a vector function."""
    t = target.dtype
    kind = numbers.held(t)
    axis = len(source.shape) - 1
    n = known(source.shape[-1])
    direct = numbers.storage(source.dtype) == kind == numbers.held(source.dtype) and source.inside
    direct = direct and known(source.strides()[-1]) == 1
    row = None if direct else stage(scope, "row", source.shape[-1:], kind, s.span)
    name = f"tile.reduce_{s.kind}{'_nan' if s.propagate_nan else ''}.{kind}"

    def fetch(outer: list[Node]) -> tuple[list[Node], Node]:
        """The address of a contiguous row of the right type, and what must be done first."""
        if row is None:
            return [], scope.address(source.buffer, source.place([*outer, i64(0)]))
        set_aside = row

        def move(at: list[Node]) -> list[Node]:
            return [set_aside.store(at, source.read_as([*outer, *at], t))]

        return over(scope, source.shape[-1:], move, "r"), row.address([i64(0)])

    def one(outer: list[Node]) -> list[Node]:
        first = [*outer, i64(0)]
        before, start = fetch(outer)
        result = tvm.Var("reduced", kind)
        count = source.shape[-1] if n is None else i64(n)
        place = _without(first, axis, len(target.shape))
        value: Node = result
        if not s.clear:
            value = _combined(s.kind, target.read(place), result, t, s.propagate_nan)
        bind = tvm.BindStmt(result, tvm.call_extern(kind, name, start, count))
        return [*before, bind, *target.write(place, value)]

    return over(scope, source.shape[:-1], one, "o")


def _across(scope: Scope, s: Reduce, source: Box, target: Box) -> list[Node]:
    """Any axis: rows of partial results are combined element by element, which vectorises along the last dimension."""
    axis = s.axis % len(source.shape)
    t = _working_type(s.kind, target.dtype)
    outer, length, inner = source.shape[:axis], source.shape[axis], source.shape[axis + 1 :]
    hold = stage(scope, "partial", inner or (i64(1),), _cell_type(t), s.span)

    def get(at: Sequence[Node]) -> Node:
        value = hold.load(at or [i64(0)])
        return numbers.decode(value, BOOL) if t.is_bool else value

    def set_(at: Sequence[Node], value: Node) -> Node:
        return hold.store(at or [i64(0)], numbers.encode(value, BOOL) if t.is_bool else value)

    def rows(o: list[Node]) -> list[Node]:
        start = over(scope, inner, lambda i: [set_(i, _element(s.kind, source, [*o, i64(0), *i], t))], "b")
        r = scope.ranged("r", i64(1), length)

        def step(i: list[Node]) -> list[Node]:
            return [
                set_(
                    i, _combined(s.kind, get(i), _element(s.kind, source, [*o, r, *i], t), t, s.propagate_nan)
                )
            ]

        steps = [] if known(length) == 1 else loop(r, i64(1), length, over(scope, inner, step, "c"))
        return [*start, *steps, *over(scope, inner, lambda i: finish(o, i), "d")]

    def finish(o: list[Node], i: list[Node]) -> list[Node]:
        place = _without([*o, i64(0), *i], axis, len(target.shape))
        value = get(i)
        if not s.clear:
            value = _combined(
                s.kind, numbers.cast(target.read(place), target.dtype, t), value, t, s.propagate_nan
            )
        return target.write(place, numbers.cast(value, t, target.dtype))

    return over(scope, outer, rows, "o")


def _cell_type(t: DType) -> str:
    return "uint8" if t.is_bool else numbers.held(t)


def scan(scope: Scope, s: Scan) -> list[Node]:
    """Each row along the axis is the one before it combined with the source's."""
    source, target = Box.of(scope, s.src), Box.of(scope, s.dst)
    axis = s.axis % len(source.shape)
    t = target.dtype
    outer, length, inner = source.shape[:axis], source.shape[axis], source.shape[axis + 1 :]
    last = subtract(length, i64(1))
    running = stage(scope, "running", inner or (i64(1),), numbers.held(t), s.span)

    def rows(o: list[Node]) -> list[Node]:
        def first(i: list[Node]) -> list[Node]:
            return put(o, i64(0), i, False)

        r = scope.ranged("r", i64(1), length)
        steps = loop(r, i64(1), length, over(scope, inner, lambda i: put(o, r, i, True), "c"))
        return [*over(scope, inner, first, "b"), *steps]

    def put(o: list[Node], r: Node, i: list[Node], more: bool) -> list[Node]:
        at = [*o, subtract(last, r) if s.reverse else r, *i]
        cell = i or [i64(0)]
        value = source.read_as(at, t)
        if more:
            value = _combined(s.kind, running.load(cell), value, t, False)
        return [running.store(cell, value), *target.write(at, numbers.rounded(running.load(cell), t))]

    return over(scope, outer, rows, "o")


def quantify(scope: Scope, s: Quantify) -> list[Node]:
    source = Box.of(scope, s.src)
    start = int(s.kind == "all")
    cell = scope.memory.cell("found", "uint8")
    zero = [i64(0)]

    def test(at: list[Node]) -> list[Node]:
        bit = tvm.Cast("uint8", numbers.cast(source.read(at), source.dtype, BOOL))
        node = tvm.BitwiseAnd if s.kind == "all" else tvm.BitwiseOr
        return [tvm.BufferStore(cell, node(tvm.BufferLoad(cell, zero), bit), zero)]

    result = tvm.Var(s.result.name, "bool")
    begin = tvm.BufferStore(cell, tvm.IntImm("uint8", start), zero)
    body = over(scope, source.shape, test)
    bind = tvm.BindStmt(result, tvm.NE(tvm.BufferLoad(cell, zero), tvm.IntImm("uint8", 0)))
    scope.define(s.result, result)
    return [begin, *body, bind]
