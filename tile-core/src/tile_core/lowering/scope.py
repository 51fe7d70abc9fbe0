"""What is known at one place of the program: values of variables, ranges, memory; and expressions made from it.

Takes expressions, gives TVM expressions: ``value`` in the type of the expression, ``wide`` as a 64-bit index.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from .. import _tvm as tvm
from ..dtypes import INT32, INT64
from ..errors import InternalError
from ..expr import (
    Binary,
    Bitcast,
    Buffer,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    Select,
    Unary,
    Var,
    loads,
    reads,
    walk,
)
from ..span import Span
from . import arithmetic, numbers
from .memory import Memory
from .nodes import Node, add, choose, every, i64, known, multiply, subtract, when


def _wraps(x: Expr) -> bool:
    """Whether a value may be taken modulo the width of its type."""
    match x:
        case Cast():
            return x.dtype.is_integer and not x.dtype.holds(x.value.dtype)
        case Binary(op="+" | "-" | "*" | "<<") | Unary(op="-"):
            return x.dtype.kind == "uint" or (x.dtype.kind == "int" and x.dtype.bits < 32)
        case _:
            return False


@dataclass
class Reports:
    """What a kernel may tell its launcher: assertions and prints, each known by its number."""

    context: Node
    failures: list[tuple[str, Span | None]] = field(default_factory=list)
    prints: list[tuple[str, tuple[object, ...]]] = field(default_factory=list)


@dataclass
class Scope:
    memory: Memory
    reports: Reports
    values: dict[Var, Node] = field(default_factory=dict)
    indices: dict[Var, Node] = field(default_factory=dict)
    analyzer: Node = field(default_factory=tvm.sym.Analyzer)

    # Variables

    def define(self, var: Var, value: Node) -> None:
        """``var`` has a held value."""
        self.values[var] = value
        self.indices.pop(var, None)

    def define_index(self, var: Var, index: Node) -> None:
        """``var`` is an integer known as a 64-bit index."""
        self.indices[var] = index
        kind = numbers.held(var.type)
        self.values[var] = index if kind == "int64" else tvm.Cast(kind, index)

    def ranged(self, name: str, low: Node, high: Node) -> Node:
        """A new 64-bit variable that runs over [low, high)."""
        var = tvm.Var(name, "int64")
        self.analyzer.bind(var, tvm.Range(low, high))
        return var

    @contextmanager
    def assuming(self, condition: Node) -> Generator[None, None, None]:
        """Within the block, ``condition`` helps proofs."""
        with self.analyzer.constraint_scope(condition):
            yield

    def proves(self, condition: Node) -> bool:
        return bool(self.analyzer.can_prove(condition))

    # Indices

    def extent(self, x: int | Expr) -> Node:
        return i64(x) if isinstance(x, int) else self.wide(x)

    def wide(self, x: Expr) -> Node:
        """An integer expression as an index. Sums and products are made in 64 bits where that cannot change them."""
        match x:
            case Const():
                return i64(int(x.value))
            case Var() if x in self.indices:
                return self.indices[x]
            case Binary(op=("+" | "-" | "*" | "//" | "%" | "min" | "max")) if (
                x.dtype.kind == "int" and x.dtype.bits >= 32
            ):
                found = self._wide_binary(x)
            case Cast() if x.dtype.is_integer and x.value.dtype.is_integer:
                found = self._wide_cast(x)
            case _:
                found = None
        return self._widened(x) if found is None else found

    def _wide_cast(self, x: Cast) -> Node | None:
        """What is cast, where the cast certainly keeps it."""
        if x.value.dtype.bits == 64 and x.value.dtype.kind == "uint":
            return None
        inner, kept = self.wide(x.value), x.type.integers
        if x.type.holds(x.value.dtype):
            return inner
        above = self.proves(tvm.GE(inner, i64(kept[0])))
        below = x.type.bits == 64 or self.proves(tvm.LE(inner, i64(kept[-1])))
        return inner if above and below else None

    def _widened(self, x: Expr) -> Node:
        value, t = self.value(x), x.dtype
        if numbers.held(t) == "int64":
            return value
        wide = tvm.Cast("int64", value)
        if not any(map(_wraps, walk(x))):
            return wide
        # TVM's bounds take it that nothing wraps, but know nothing of exclusive or
        hidden = tvm.BitwiseXor(tvm.BitwiseXor(wide, i64(1)), i64(1))
        if t.kind == "int" or t.bits == 64:  # an index of 2**63 and more is as far outside as a negative one
            return hidden
        return tvm.BitwiseAnd(hidden, i64(t.integers[-1]))

    def _wide_binary(self, x: Binary) -> Node | None:
        a, b = self.wide(x.a), self.wide(x.b)
        match x.op:
            case "+":
                found = add(a, b)
            case "-":
                found = subtract(a, b)
            case "*":
                found = multiply(a, b)
            case "min":
                return tvm.Min(a, b)
            case "max":
                return tvm.Max(a, b)
            case _:
                divisor, dividend = known(b), known(a)
                if divisor is None or divisor <= 0:
                    return None
                if dividend is not None:
                    return i64(dividend // divisor if x.op == "//" else dividend % divisor)
                return self.floor(x.op, a, divisor)
        if x.dtype.bits == 32 and any(isinstance(e, (Load, Call)) for e in walk(x)):
            # data in 32 bits may wrap; only a proof that it does not allows 64 bits
            bound = self.analyzer.const_int_bound(found)
            if bound.min_value not in INT32.integers or bound.max_value not in INT32.integers:
                return None
        return found

    @staticmethod
    def is_comparison(x: Expr) -> bool:
        """Whether ``x`` is one comparison of integers that no memory takes part in."""
        compared = isinstance(x, Binary) and x.op in arithmetic.COMPARE and x.a.dtype.kind == "int"
        return compared and not reads(x)

    def condition(self, x: Expr) -> Node | None:
        """What ``x`` says about indices, for proofs: its comparisons, joined by ``and``. None: nothing."""
        if isinstance(x, Binary) and x.op == "and":
            parts = [c for c in (self.condition(x.a), self.condition(x.b)) if c is not None]
            return every(parts)
        if isinstance(x, Binary) and self.is_comparison(x):
            return arithmetic.COMPARE[x.op](self.wide(x.a), self.wide(x.b))
        return None

    def floor(self, op: str, a: Node, divisor: int) -> Node:
        """``a // divisor`` or ``a % divisor`` for a positive number; the plain instruction where ``a`` is not negative."""
        b = i64(divisor)
        if self.proves(tvm.GE(a, i64(0))):
            return tvm.Div(a, b) if op == "//" else tvm.Mod(a, b)
        if divisor & (divisor - 1) == 0:
            shift = i64(divisor.bit_length() - 1)
            return tvm.RShift(a, shift) if op == "//" else tvm.BitwiseAnd(a, i64(divisor - 1))
        return arithmetic.binary(op, a, b, INT64)

    def strides(self, buffer: Buffer) -> list[Node]:
        return [self.extent(s) for s in buffer.row_major_strides()]

    def offset(self, buffer: Buffer, place: Sequence[Node]) -> Node:
        """The number of elements from the start of the buffer."""
        out = i64(0)
        for at, stride in zip(place, self.strides(buffer), strict=True):
            out = add(out, multiply(at, stride))
        return out

    def unproved(self, buffer: Buffer, place: Sequence[Node]) -> Node | None:
        """The condition that ``place`` is inside the buffer, or None if it certainly is."""
        conditions = []
        for at, extent in zip(place, buffer.shape, strict=True):
            size = self.extent(extent)
            conditions += [c for c in (tvm.GE(at, i64(0)), tvm.LT(at, size)) if not self.proves(c)]
        return every(conditions)

    # Memory

    def stored(self, buffer: Buffer, place: Sequence[Node]) -> Node:
        """The bits of an element that is inside the buffer."""
        return tvm.BufferLoad(self.memory.array(buffer), [self.offset(buffer, place)])

    def read(self, buffer: Buffer, place: Sequence[Node]) -> Node:
        """The value of an element; zero outside the buffer."""
        value = numbers.decode(self.stored(buffer, place), buffer.dtype)
        guard = self.unproved(buffer, place)
        return value if guard is None else choose(guard, value, numbers.zero(buffer.dtype))

    def write(self, buffer: Buffer, place: Sequence[Node], value: Node) -> list[Node]:
        """A store of a held value; nothing outside the buffer."""
        return self.write_bits(buffer, place, numbers.encode(value, buffer.dtype))

    def write_bits(self, buffer: Buffer, place: Sequence[Node], bits: Node) -> list[Node]:
        store = tvm.BufferStore(self.memory.array(buffer), bits, [self.offset(buffer, place)])
        guard = self.unproved(buffer, place)
        return when(guard, [store])

    def address(self, buffer: Buffer, place: Sequence[Node]) -> Node:
        return tvm.tirx.address_of(self.stored(buffer, place))

    # Values

    def value(self, x: Expr) -> Node:
        match x:
            case Const():
                return numbers.constant(x.value, x.type)
            case Var():
                return self._variable(x)
            case Unary():
                return self._unary(x)
            case Binary():
                return arithmetic.binary(x.op, self.value(x.a), self.value(x.b), x.a.dtype)
            case Select():
                return self._select(x)
            case Cast():
                return numbers.cast(self.value(x.value), x.value.dtype, x.type)
            case Bitcast():
                return self._bitcast(x)
            case Call():
                t = x.arguments[0].dtype
                return arithmetic.function(x.function, [self.value(a) for a in x.arguments], t)
            case Load():
                return self.read(x.buffer, [self.wide(i) for i in x.indices])
            case _:
                raise InternalError(f"no lowering of {type(x).__name__}", x.span)

    def _variable(self, x: Var) -> Node:
        if x not in self.values:
            raise InternalError(f"{x.name} has no value here", x.span)
        return self.values[x]

    def _unary(self, x: Unary) -> Node:
        value, t = self.value(x.value), x.value.dtype
        match x.op:
            case "not":
                return tvm.Not(value)
            case "~":
                return arithmetic.inverted(value, t)
            case _:
                return arithmetic.negative(value, t)

    def _select(self, x: Select) -> Node:
        """Both sides are evaluated if all their loads are certainly inside; else only the chosen one is."""
        condition = self.value(x.condition)
        if not x.lazy or all(self._certain(e) for side in (x.then, x.other) for e in loads(side)):
            return tvm.Select(condition, self.value(x.then), self.value(x.other))
        fact = self.condition(x.condition)
        if fact is None:
            return choose(condition, self.value(x.then), self.value(x.other))
        with self.assuming(fact):
            then = self.value(x.then)
        if not self.is_comparison(x.condition):
            return choose(condition, then, self.value(x.other))
        with self.assuming(tvm.Not(fact)):
            return choose(condition, then, self.value(x.other))

    def _certain(self, x: Load) -> bool:
        return self.unproved(x.buffer, [self.wide(i) for i in x.indices]) is None

    def _bitcast(self, x: Bitcast) -> Node:
        source, to = x.value.dtype, x.type
        bits = numbers.encode(self.value(x.value), source)
        return numbers.decode(numbers.reinterpreted(bits, numbers.storage(source), numbers.storage(to)), to)
