"""Thread-level programs as text of a C-like language. What the language spells differently stands in a ``Dialect``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..dtypes import DType
from ..errors import Unsupported
from ..expr import Binary, Bitcast, Buffer, Call, Cast, Const, Expr, Load, Select, Space, Unary, Var, expr
from ..program import (
    Alloc,
    Assert,
    Assume,
    Atomic,
    Bind,
    Break,
    Continue,
    For,
    If,
    Invoke,
    Place,
    Print,
    Stmt,
    Store,
    Sync,
    While,
)
from .identifiers import plain


@dataclass(frozen=True)
class Dialect:
    """How a language spells things. Values of floats narrower than 32 bits are stored as they are and computed in float.

    ``types``: the name of each scalar type. ``functions``: of each intrinsic on float32; ``double``: on float64.
    ``to_float``, ``from_float``: conversions of narrow floats. ``atomics``: (op, type) -> function.
    ``barrier``: a statement, given the number of the barrier and how many threads meet there (0: the whole block).
    ``address``: from a pointer to shared memory, the number of its address. ``unroll``: a line before a loop.
    ``bitcast``: function with the target type as template argument. ``fence``: a statement that orders what this thread did in
    memory before it against what it does after it, for all other threads. ``wide``: the type of 64-bit indices, and what
    literals of that width end with. ``table``: what an array of constants begins with.
    """

    types: Mapping[str, str]
    functions: Mapping[str, str]
    to_float: Mapping[str, str]
    from_float: Mapping[str, str]
    atomics: Callable[[str, DType], str]
    barrier: Callable[[str, int], str]
    address: Callable[[str], str]
    unroll: str
    bitcast: str
    failed: Callable[[str], str]
    printed: Callable[[str, Sequence[tuple[str, DType]]], str]
    reserved: frozenset[str] = frozenset()
    fence: str = ""
    table: str = "static const"
    wide: tuple[str, str] = ("long long", "LL")


REGISTER_BYTES = 16  # private arrays may be read as words and vectors of words

PRECEDENCE = {
    "or": 1, "and": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7, "<<": 8, ">>": 8,
    "+": 9, "-": 9, "*": 10, "/": 10, "truncdiv": 10, "truncmod": 10,
}  # fmt: skip
BEFORE, AFTER = ("release", "acq_rel", "seq_cst"), ("acquire", "acq_rel", "seq_cst")
SPELLING = {"or": "||", "and": "&&", "truncdiv": "/", "truncmod": "%"}


@dataclass
class Printer:
    """Prints statements. ``names`` gives each buffer and variable a name of its own."""

    dialect: Dialect
    names: dict[Buffer | Var, str] = field(default_factory=dict["Buffer | Var", str])
    taken: set[str] = field(default_factory=set[str])

    def name(self, x: Buffer | Var) -> str:
        found = self.names.get(x)
        if found is None:
            own = plain(x.name)
            found, n = own, 1
            while found in self.taken or found in self.dialect.reserved:
                n += 1
                found = f"{own}_{n}"
            self.names[x] = found
            self.taken.add(found)
        return found

    def type(self, t: DType) -> str:
        found = self.dialect.types.get(t.name)
        if found is None:
            raise Unsupported(f"no value of type {t} on this target")
        return found

    # Statements.

    def block(self, body: Sequence[Stmt], depth: int) -> Iterator[str]:
        for s in body:
            for line in self.statement(s):
                yield f"{'  ' * depth}{line}"

    def nested(self, head: str, body: Sequence[Stmt]) -> Iterator[str]:
        yield f"{head} {{"
        yield from self.block(body, 1)
        yield "}"

    def statement(self, s: Stmt) -> Iterator[str]:
        match s:
            case Store():
                yield f"{self.element(s.buffer, s.indices)} = {self.text(s.value)};"
            case Bind():
                yield f"const {self.type(s.var.dtype)} {self.name(s.var)} = {self.text(s.value)};"
            case Alloc():
                yield from self.alloc(s)
            case For():
                yield from self.loop(s)
            case While():
                yield from self.nested(f"while ({self.text(s.condition)})", s.body)
            case If():
                yield from self.nested(f"if ({self.text(s.condition)})", s.then)
                if s.other:
                    yield from self.nested("else", s.other)
            case Atomic():
                yield from self.atomic(s)
            case Sync():
                yield self.dialect.barrier(self.text(expr(s.number)), s.threads)
            case Invoke():
                yield self.invoke(s)
            case Break():
                yield "break;"
            case Continue():
                yield "continue;"
            case Assert():
                yield f"if (!({self.text(s.condition)})) {self.dialect.failed(s.message)}"
            case Print():
                values = [(self.text(v), v.dtype) for v in s.values if isinstance(v, Expr)]
                yield self.dialect.printed(s.message, values)
            case Assume():
                return
            case _:
                raise Unsupported(f"{type(s).__name__} has no thread-level text", s.span)

    def alloc(self, s: Alloc) -> Iterator[str]:
        """Private arrays and scalars stand where they begin to exist; shared tiles are placed by the caller."""
        b = s.buffer
        if s.values:
            head = f"{self.dialect.table} {self.type(b.dtype)} {self.name(b)}[{len(s.values)}]"
            yield f"{head} = {{{', '.join(map(str, s.values))}}};"
        elif b.space is Space.VAR:
            yield f"{self.type(b.dtype)} {self.name(b)};"
        elif b.space is Space.LOCAL:
            size = math.prod(d for d in b.shape if isinstance(d, int))
            yield f"alignas({REGISTER_BYTES}) {self.type(b.dtype)} {self.name(b)}[{max(1, size)}];"

    def loop(self, s: For) -> Iterator[str]:
        if s.var is None:
            raise Unsupported("a loop without an index", s.span)
        if s.kind == "unroll":
            yield self.dialect.unroll
        v, type = self.name(s.var), self.type(s.var.dtype)
        start = self.text(s.start)
        count = s.extent if isinstance(s.extent, int) else f"({self.text(s.extent)})"
        plain = isinstance(s.start, Const) and s.start.value == 0
        first = self.text(s.start, PRECEDENCE["+"])
        stop = f"{count}" if plain and abs(s.step) == 1 else f"{first} + {count} * {abs(s.step)}"
        if s.step < 0:
            stop = f"{first} - {count} * {-s.step}"
        step = f"++{v}" if s.step == 1 else f"{v} += {s.step}"
        yield from self.nested(
            f"for ({type} {v} = {start}; {v} {'<' if s.step > 0 else '>'} {stop}; {step})", s.body
        )

    def atomic(self, s: Atomic) -> Iterator[str]:
        """The atomics of a dialect order nothing themselves."""
        if s.order in BEFORE:
            yield self.dialect.fence
        where = f"&{self.element(s.buffer, s.indices)}"
        function = self.updater(s)
        value = "" if s.value is None else f", {self.text(s.value)}"
        result = "" if s.result is None else f"const {self.type(s.result.dtype)} {self.name(s.result)} = "
        yield f"{result}{function}({where}{value});"
        if s.order in AFTER:
            yield self.dialect.fence

    def updater(self, s: Atomic) -> str:
        """The function of an atomic; a language whose functions differ by address space has its own printer."""
        return self.dialect.atomics(s.op, s.buffer.dtype)

    def invoke(self, s: Invoke) -> str:
        given = ", ".join(self.place(a) if isinstance(a, Place) else self.text(a) for a in s.arguments)
        result = "" if s.result is None else f"const {self.type(s.result.dtype)} {self.name(s.result)} = "
        return f"{result}{s.function}({given});"

    def place(self, p: Place) -> str:
        pointer = f"&{self.element(p.buffer, p.indices)}"
        if p.window:
            return self.dialect.address(pointer)
        return f"reinterpret_cast<{p.type}*>({pointer})" if p.type else pointer

    # Expressions.

    def element(self, b: Buffer, indices: Sequence[Expr]) -> str:
        if b.space is Space.VAR:
            return self.name(b)
        return f"{self.name(b)}[{self.address(b, indices)}]"

    def address(self, b: Buffer, indices: Sequence[Expr]) -> str:
        """The element's number. Addresses in global memory are 64 bits wide, whatever the indices are."""
        if b.space is not Space.GLOBAL:
            return (
                " + ".join(
                    self._scaled(i, step, False)
                    for i, step in zip(indices, b.row_major_strides(), strict=True)
                )
                or "0"
            )
        parts = [self._scaled(i, step, True) for i, step in zip(indices, b.row_major_strides(), strict=True)]
        return " + ".join(parts) or "0"

    def _scaled(self, i: Expr, step: int | Expr, wide: bool) -> str:
        at = f"({self.dialect.wide[0]})({self.text(i)})" if wide else self.text(i, 10)
        if isinstance(step, Expr):
            return f"{at} * ({self.text(step)})"
        return at if step == 1 else f"{at} * {step}"

    def text(self, x: Expr, outer: int = 0) -> str:
        match x:
            case Const():
                return self.constant(x)
            case Var():
                return self.name(x)
            case Load():
                return self.element(x.buffer, x.indices)
            case Binary():
                return self.binary(x, outer)
            case Unary():
                return self.unary(x)
            case Select():
                inner = f"{self.text(x.condition, 1)} ? {self.text(x.then, 1)} : {self.text(x.other, 1)}"
                return f"({inner})"
            case Cast():
                return self.cast(x.value, x.type)
            case Bitcast():
                return f"{self.dialect.bitcast}<{self.type(x.type)}>({self.text(x.value)})"
            case Call():
                return self.call(x)
            case _:
                raise TypeError(type(x).__name__)

    def constant(self, x: Const) -> str:
        t = x.dtype
        if t.is_bool:
            return "true" if x.value else "false"
        if t.is_integer:
            return _integer(int(x.value), t, self.dialect.wide[1])
        value = float(x.value)
        if t.name in self.dialect.from_float:
            return f"{self.dialect.from_float[t.name]}({_float(value)})"
        return _float(value) if t.bits == 32 else _double(value)

    def narrow(self, t: DType) -> bool:
        return t.name in self.dialect.from_float

    def widened(self, x: Expr, outer: int = 0) -> str:
        """A value as the type it is computed in."""
        if isinstance(x, Const) and x.dtype.is_integer and x.dtype.bits < 32:
            return f"({self.type(x.dtype)})({self.text(x)})"  # a plain number is an int, which functions tell apart
        if not self.narrow(x.dtype):
            return self.text(x, outer)
        if isinstance(x, Const):
            return _float(float(x.value))
        return f"{self.dialect.to_float[x.dtype.name]}({self.text(x)})"

    def rounded(self, text: str, t: DType) -> str:
        return f"{self.dialect.from_float[t.name]}({text})" if self.narrow(t) else text

    def binary(self, x: Binary, outer: int) -> str:
        op, t = x.op, x.a.dtype
        if op in ("min", "max"):
            return self.rounded(f"{self.function(op, t)}({self.widened(x.a)}, {self.widened(x.b)})", t)
        if op in ("//", "%"):
            return self.floored(x, outer)
        if op in ("truncdiv", "truncmod") and t.is_float:
            return self.rounded(f"{self.function(op, t)}({self.widened(x.a)}, {self.widened(x.b)})", t)
        level = PRECEDENCE[op]
        inner = f"{self.widened(x.a, level)} {SPELLING.get(op, op)} {self.widened(x.b, level + 1)}"
        if self.narrow(t) and x.dtype == t:
            return self.rounded(inner, t)
        if t.is_integer and t.bits < 32 and x.dtype == t:
            return f"({self.type(t)})({inner})"
        return f"({inner})" if level < outer else inner

    def floored(self, x: Binary, outer: int) -> str:
        """Division rounding down: a shift or mask for powers of two (arithmetic, so also of negative numbers)."""
        t = x.a.dtype
        by = x.b.value if isinstance(x.b, Const) else 0
        if t.is_integer and isinstance(by, int) and by > 0 and by & (by - 1) == 0 and t.bits >= 32:
            level = PRECEDENCE[">>" if x.op == "//" else "&"]
            inner = (
                f"{self.text(x.a, level)} >> {by.bit_length() - 1}"
                if x.op == "//"
                else f"{self.text(x.a, level)} & {by - 1}"
            )
            return f"({inner})" if level < outer else inner
        name = self.function("floordiv" if x.op == "//" else "floormod", t)
        return self.rounded(f"{name}({self.widened(x.a)}, {self.widened(x.b)})", t)

    def unary(self, x: Unary) -> str:
        if x.op == "not":
            return (
                f"!{self.text(x.value, 11)}"
                if isinstance(x.value, (Var, Const, Load))
                else f"!({self.text(x.value)})"
            )
        inner = f"{x.op}({self.widened(x.value)})"
        if x.value.dtype.is_integer and x.value.dtype.bits < 32:
            return f"({self.type(x.value.dtype)})({inner})"
        return self.rounded(inner, x.value.dtype)

    def cast(self, value: Expr, to: DType) -> str:
        if to.is_bool:
            return f"({self.widened(value)} != 0)"
        if self.narrow(to):
            return f"{self.dialect.from_float[to.name]}(static_cast<float>({self.widened(value)}))"
        return f"static_cast<{self.type(to)}>({self.widened(value)})"

    def function(self, name: str, t: DType) -> str:
        key = f"{name}.{'double' if t.name == 'float64' else 'float' if t.is_float else t.kind}"
        found = self.dialect.functions.get(key)
        if found is None:
            raise Unsupported(f"{name} of {t} is not there on this target")
        return found

    def call(self, x: Call) -> str:
        t = x.arguments[0].dtype
        arguments = ", ".join(self.widened(a) for a in x.arguments)
        text = f"{self.function(x.function, t)}({arguments})"
        return self.rounded(text, x.type) if x.type == t else text


def _integer(value: int, t: DType, long: str) -> str:
    if t.bits == 64:
        if value == -(2**63):
            return f"(-9223372036854775807{long} - 1)"
        return f"{value}{'U' if t.kind == 'uint' else ''}{long}"
    if value == -(2**31):
        return "(-2147483647 - 1)"
    text = f"{value}u" if t.kind == "uint" else str(value)
    return f"({text})" if value < 0 else text


def _float(value: float) -> str:
    if math.isnan(value):
        return "TILE_NAN"
    if math.isinf(value):
        return "TILE_INFINITY" if value > 0 else "(-TILE_INFINITY)"
    import struct

    try:
        (rounded,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:
        return "TILE_INFINITY" if value > 0 else "(-TILE_INFINITY)"
    text = repr(rounded)
    text = text if any(c in text for c in ".e") else f"{text}.0"
    return f"({text}f)" if rounded < 0 or text.startswith("-") else f"{text}f"


def _double(value: float) -> str:
    if math.isnan(value):
        return "(double)TILE_NAN"
    if math.isinf(value):
        return "(double)TILE_INFINITY" if value > 0 else "(-(double)TILE_INFINITY)"
    text = repr(value)
    text = text if any(c in text for c in ".e") else f"{text}.0"
    return f"({text})" if text.startswith("-") else text
