"""Thread-level statements as WGSL text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from tile_core.errors import InternalError, Unsupported
from tile_core.expr import Buffer, Const, Expr, Space, Var
from tile_core.program import (
    Alloc,
    Assume,
    Atomic,
    Bind,
    Break,
    Continue,
    For,
    If,
    Invoke,
    Place,
    Stmt,
    Store,
    Sync,
    While,
)

from .addresses import Addresses
from .atomics import update
from .expressions import Expressions
from .instructions import BELOW, DOT, LANE, MOVE, SWAP, moved_bytes
from .matrices import CALLS
from .matrix_text import printed
from .memory import Memory
from .names import Names
from .scalars import Scalars
from .storage import Form, Stored, private
from .uses import Uses

REFUSED = {
    "Print": ("a kernel on this target cannot print", "print in the interpreter: TILE_INTERPRET=1"),
    "Assert": (
        "a kernel on this target cannot stop with a message",
        "check in the interpreter: TILE_INTERPRET=1",
    ),
}


class Printer:
    """Prints the statements of one launch. ``visible``: barriers also order tensors, which invocations of a block share."""

    def __init__(
        self, scalars: Scalars, addresses: Addresses, uses: Uses, names: Names, visible: bool
    ) -> None:
        self.scalars, self.uses, self.names, self.visible = scalars, uses, names, visible
        self.memory = Memory(scalars, addresses, lambda x: self.expressions.text(x))
        self.expressions = Expressions(self.memory, names.of)
        self.text = self.expressions.text
        self.calls: Mapping[str, Callable[[Invoke], Iterator[str]]] = {
            MOVE: self.move, DOT: self.dot, SWAP: self.swap, BELOW: self.from_below, LANE: self.of_lane,
            **dict.fromkeys(CALLS, self.matrices),
        }  # fmt: skip

    def block(self, body: Sequence[Stmt], depth: int) -> Iterator[str]:
        for s in body:
            for line in self.statement(s):
                yield f"{'  ' * depth}{line}"

    def nested(self, head: str, body: Sequence[Stmt]) -> Iterator[str]:
        yield f"{head} {{".lstrip()
        yield from self.block(body, 1)
        yield "}"

    def statement(self, s: Stmt) -> Iterator[str]:
        try:
            yield from self.printed(s)
        except Unsupported as error:
            raise error.at(s.span) from None

    def printed(self, s: Stmt) -> Iterator[str]:
        match s:
            case Store():
                yield from self.memory.store(s.buffer, s.indices, self.text(s.value))
            case Bind():
                yield f"{self.named(s.var)} = {self.text(s.value)};"
            case Alloc():
                yield from self.alloc(s.buffer)
            case For():
                yield from self.loop(s)
            case While():
                yield from self.nested(f"while ({self.text(s.condition)})", s.body)
            case If(condition=Const(value=True)):
                yield from self.nested("", s.then)
            case If():
                yield from self.nested(f"if ({self.text(s.condition)})", s.then)
                if s.other:
                    yield from self.nested("else", s.other)
            case Atomic():
                yield from update(self, s)
            case Sync():
                yield from self.barrier(s)
            case Invoke():
                yield from self.calls[
                    s.function.partition("_")[0] if s.function.startswith(MOVE) else s.function
                ](s)
            case Break():
                yield "break;"
            case Continue():
                yield "continue;"
            case Assume():
                return
            case _:
                name = type(s).__name__
                what, help = REFUSED.get(name, (f"{name} has no WGSL text", ""))
                raise Unsupported(what, s.span, help=help)

    def named(self, v: Var) -> str:
        return f"let {self.names.of(v)}: {self.scalars.register(v.dtype)}"

    def alloc(self, b: Buffer) -> Iterator[str]:
        """Private arrays and scalars stand where they begin to exist; tiles and tensors are variables of the module."""
        if b.space not in (Space.VAR, Space.LOCAL):
            return
        name = self.names.of(b)
        form, cell = private(b, self.uses[b], self.scalars)
        stored = self.memory.stored[b.storage] = Stored(name, form, cell)
        if b.space is Space.VAR:
            yield f"var {name}: {self.scalars.register(b.dtype)};"
            return
        count = max(1, math.prod(d for d in b.shape if isinstance(d, int)))
        words = form is Form.WORDS
        yield f"var {name}: {stored.array(-(-count * b.dtype.bytes // 4) if words else count)};"

    def loop(self, s: For) -> Iterator[str]:
        if s.var is None:
            raise InternalError("a loop without an index", s.span)
        v, register = self.names.of(s.var), self.scalars.register(s.var.dtype)
        unit = "u" if register == "u32" else ""
        start = self.text(s.start)
        count = f"{s.extent}{unit}" if isinstance(s.extent, int) else f"({self.text(s.extent)})"
        plain = isinstance(s.start, Const) and s.start.value == 0
        size = abs(s.step)
        whole = count if size == 1 else f"{count} * {size}{unit}"
        stop = whole if plain and s.step > 0 else f"{start} {'+' if s.step > 0 else '-'} {whole}"
        step = f"{v} = {v} {'+' if s.step > 0 else '-'} {size}{unit}"
        head = f"for (var {v}: {register} = {start}; {v} {'<' if s.step > 0 else '>'} {stop}; {step})"
        yield from self.nested(head, s.body)

    def barrier(self, s: Sync) -> Iterator[str]:
        if s.threads or not (isinstance(s.number, int) and s.number == 0):
            raise Unsupported("some threads of a block meet at a barrier: WGSL lets only all of them", s.span)
        if self.visible:
            yield "storageBarrier();"
        yield "workgroupBarrier();"

    # Calls.

    def matrices(self, s: Invoke) -> Iterator[str]:
        yield from printed(self.memory, self.text, s)

    def move(self, s: Invoke) -> Iterator[str]:
        to, source, *rest = s.arguments
        inside = "".join(self.text(x) for x in rest if isinstance(x, Expr))
        yield from self.memory.move(_place(to), _place(source), moved_bytes(s), inside)

    def dot(self, s: Invoke) -> Iterator[str]:
        a, b, c = s.arguments
        left = _place(a)
        kind = "I" if left.buffer.dtype.kind == "int" else "U"
        sum = f"dot4{kind}8Packed({self.memory.bytes_of(left)}, {self.memory.bytes_of(_place(b))})"
        yield from self.result(s, lambda to: f"{to}({sum}) + {self.text(_value(c))}")

    def result(self, s: Invoke, value: Callable[[str], str]) -> Iterator[str]:
        if s.result is None:
            raise InternalError(f"{s.function} without a result")
        yield f"{self.named(s.result)} = {value(self.scalars.register(s.result.dtype))};"

    def swap(self, s: Invoke) -> Iterator[str]:
        value, distance = s.arguments
        yield from self.result(
            s, lambda _: f"subgroupShuffleXor({self.text(_value(value))}, {_number(distance)}u)"
        )

    def from_below(self, s: Invoke) -> Iterator[str]:
        """A shuffle is undefined where it reaches beyond the subgroup: the first lanes keep their own value."""
        value, distance = s.arguments
        text, by = self.text(_value(value)), _number(distance)
        shuffled = f"subgroupShuffle({text}, select(lane - {by}u, lane, lane < {by}u))"
        yield from self.result(s, lambda _: shuffled)

    def of_lane(self, s: Invoke) -> Iterator[str]:
        value, lane = s.arguments
        yield from self.result(
            s, lambda _: f"subgroupShuffle({self.text(_value(value))}, u32({self.text(_value(lane))}))"
        )


def _place(a: Expr | Place) -> Place:
    if not isinstance(a, Place):
        raise InternalError("a place is needed here")
    return a


def _value(a: Expr | Place) -> Expr:
    if isinstance(a, Place):
        raise InternalError("a value is needed here")
    return a


def _number(a: Expr | Place) -> int:
    if not isinstance(a, Const):
        raise InternalError("a number is needed here")
    return int(a.value)
