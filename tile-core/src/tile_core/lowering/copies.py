"""Copies, fills and transpositions: loops split into the part inside the buffers and the rest, with no test per element."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .. import _tvm as tvm
from ..program import Copy, Fill, Transpose
from . import numbers
from .nodes import Node, greatest, i64, known, least, loop, when
from .regions import Box
from .scope import Scope
from .staging import over, stage

Move = Callable[[list[Node]], list[Node]]


def copy(scope: Scope, s: Copy) -> list[Node]:
    source, target = aligned(Box.of(scope, s.src), Box.of(scope, s.dst))
    if not overlapping(source, target):
        return transfer(scope, source, target)
    t = source.dtype
    hold = stage(scope, "staged", source.shape, numbers.held(t), s.span)
    first = over(scope, source.shape, lambda at: [hold.store(at, source.read(at))])
    second = over(
        scope, target.shape, lambda at: target.write(at, numbers.cast(hold.load(at), t, target.dtype))
    )
    return [*first, *second]


def aligned(a: Box, b: Box) -> tuple[Box, Box]:
    """Both boxes with the dimensions that they share; leading ones beyond that have extent 1."""
    rank = min(len(a.counted), len(b.counted))
    return a.trimmed(rank), b.trimmed(rank)


def overlapping(a: Box, b: Box) -> bool:
    """Whether writing ``b`` may change elements of ``a`` that are still to be read."""
    if a.buffer.storage != b.buffer.storage:
        return False
    return a.buffer != b.buffer or not all(
        a.scope.proves(tvm.EQ(x, y)) for x, y in zip(a.start, b.start, strict=True)
    )


def transfer(scope: Scope, source: Box, target: Box) -> list[Node]:
    """Every element of ``target`` inside its buffer gets that of ``source``, or zero where that is outside its own."""
    t, u = source.dtype, target.dtype

    def move(local: list[Node]) -> list[Node]:
        bits = source.bits(local)
        if t != u:
            bits = numbers.encode(numbers.cast(numbers.decode(bits, t), t, u), u)
        return [put(scope, target, local, bits)]

    nothing = numbers.encode(numbers.zero(u), u)

    def clear(local: list[Node]) -> list[Node]:
        return [put(scope, target, local, nothing)]

    extents = [e if known(e) is not None else f for e, f in zip(target.shape, source.shape, strict=True)]
    out = split(target, source, extents, move, clear)
    readable = source.points_inside()
    if readable is not None:
        out = when(readable, out, split(target, None, extents, clear, clear))
    return when(target.points_inside(), out)


def put(scope: Scope, target: Box, local: Sequence[Node], bits: Node) -> Node:
    """A store to a place that is inside the buffer."""
    place = target.place(local)
    return tvm.BufferStore(scope.memory.array(target.buffer), bits, [scope.offset(target.buffer, place)])


def split(target: Box, source: Box | None, extents: Sequence[Node], move: Move, clear: Move) -> list[Node]:
    """Loops over the writable part of ``target``, cut where ``source`` begins and ends to be readable."""

    def level(d: int, local: list[Node], body: Move, reading: bool) -> list[Node]:
        if d == len(extents):
            return body(local)
        low, high = target.bounds(d) or (i64(0), extents[d])
        limits = source.bounds(d) if source is not None and reading else None

        def part(begin: Node, end: Node, body: Move, reading: bool) -> list[Node]:
            if (n := known(begin)) is not None and n == known(end):
                return []
            var = tvm.Var(f"i{d}", "int64")
            return loop(var, begin, end, level(d + 1, [*local, var], body, reading))

        if limits is None:
            return part(low, high, body, reading)
        first, last = greatest(low, limits[0]), least(high, limits[1])
        before = part(low, least(high, first), clear, False) if known(limits[0]) != 0 else []
        return [*before, *part(first, last, body, reading), *part(greatest(low, last), high, clear, False)]

    return level(0, [], move, source is not None)


def fill(scope: Scope, s: Fill) -> list[Node]:
    target = Box.of(scope, s.dst)
    value = tvm.Var("filled", numbers.storage(target.dtype))
    bits = numbers.encode(scope.value(s.value), target.dtype)

    def set_value(local: list[Node]) -> list[Node]:
        return [put(scope, target, local, value)]

    body = when(target.points_inside(), split(target, None, target.shape, set_value, set_value))
    return [tvm.BindStmt(value, bits), *body]


def transpose(scope: Scope, s: Transpose) -> list[Node]:
    source, target = Box.of(scope, s.src), Box.of(scope, s.dst)
    t, u = source.dtype, target.dtype
    if source.buffer.storage != target.buffer.storage:
        return over(scope, target.shape, lambda at: target.write(at, source.read_as(swapped(at), u)))
    hold = stage(scope, "transposed", source.shape, numbers.held(t), s.span)
    first = over(scope, source.shape, lambda at: [hold.store(at, source.read(at))])
    second = over(
        scope, target.shape, lambda at: target.write(at, numbers.cast(hold.load(swapped(at)), t, u))
    )
    return [*first, *second]


def swapped(local: Sequence[Node]) -> list[Node]:
    return [*local[:-2], local[-1], local[-2]]
