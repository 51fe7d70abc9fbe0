"""Scalar expressions as WGSL text. WGSL converts nothing by itself and asks for parentheses where C has precedence."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass

from tile_core.dtypes import DType
from tile_core.errors import Unsupported
from tile_core.expr import Binary, Bitcast, Call, Cast, Const, Expr, Load, Select, Unary, Var
from tile_core.expr.nodes import COMPARISONS

from .functions import FLOAT, INTEGER
from .memory import Memory
from .scalars import ZERO

SPELLING = {"and": "&&", "or": "||", "truncdiv": "/", "truncmod": "%"}
SUM, PRODUCT, OPERAND = 1, 2, 3  # how tightly an operator binds; all others stand in parentheses of their own
LEVELS = {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "truncdiv": PRODUCT, "truncmod": PRODUCT}
FLOAT_FUNCTIONS = {"min": "min", "max": "max", "//": "floordiv", "%": "floormod"}
CASTABLE = ("f32", "i32", "u32")


@dataclass
class Expressions:
    """``named`` gives a variable its name."""

    memory: Memory
    named: Callable[[Var], str]

    @property
    def scalars(self):  # type: ignore[no-untyped-def]
        return self.memory.scalars

    def text(self, x: Expr, outer: int = 0) -> str:
        """``outer``: how tightly what stands around binds."""
        match x:
            case Const():
                return self.constant(x)
            case Var():
                return self.named(x)
            case Load():
                return self.memory.load(x.buffer, x.indices)
            case Binary():
                return self.binary(x, outer)
            case Unary():
                return self.unary(x)
            case Select():
                return f"select({self.text(x.other)}, {self.text(x.then)}, {self.text(x.condition)})"
            case Cast():
                return self.cast(x.value, x.type)
            case Bitcast():
                return self.bitcast(x)
            case Call():
                return self.call(x)
            case _:
                raise TypeError(type(x).__name__)

    def constant(self, x: Const) -> str:
        t = x.dtype
        register = self.scalars.register(t)
        if t.is_bool:
            return "true" if x.value else "false"
        if t.is_integer:
            value = int(x.value)
            if register == "u32":
                return f"{value}u"
            return f"i32({value})" if value == -(2**31) else f"({value})" if value < 0 else str(value)
        return self.scalars.rounded(_float(float(x.value)), t)

    def widened(self, x: Expr, outer: int = 0) -> str:
        """A value as the type it is computed in."""
        if self.scalars.register(x.dtype) != "f16":
            return self.text(x, outer)
        return _float(float(x.value)) if isinstance(x, Const) else f"f32({self.text(x)})"

    def binary(self, x: Binary, outer: int) -> str:
        op, t = x.op, x.a.dtype
        if (t.is_float and op in FLOAT_FUNCTIONS) or op in ("min", "max"):
            name = self.function(FLOAT_FUNCTIONS[op], t)
            return self.scalars.rounded(f"{name}({self.widened(x.a)}, {self.widened(x.b)})", t)
        if op in ("//", "%"):
            return self.floored(x, outer)
        if op in ("truncdiv", "truncmod") and t.is_float:
            return self.scalars.rounded(
                f"{self.function(op, t)}({self.widened(x.a)}, {self.widened(x.b)})", t
            )
        if op in ("<<", ">>"):
            by = f"{int(x.b.value)}u" if isinstance(x.b, Const) else f"u32({self.text(x.b)})"
            return self.scalars.wrapped(f"({self.text(x.a, OPERAND)} {op} {by})", t)
        if t.is_bool and op in ("^", "<", "<=", ">", ">=", "+", "*"):
            return self.of_bools(x)
        level = LEVELS.get(op, 0)
        sides = (level, level + 1) if level else (SUM, SUM) if op in COMPARISONS else (OPERAND, OPERAND)
        inner = f"{self.widened(x.a, sides[0])} {SPELLING.get(op, op)} {self.widened(x.b, sides[1])}"
        if x.dtype == t and self.scalars.narrow(t):
            return self.scalars.rounded(inner, t)
        if x.dtype == t and t.is_integer and t.bits < 32:
            return self.scalars.wrapped(f"({inner})", t)
        return f"({inner})" if level < max(outer, 1) else inner

    def of_bools(self, x: Binary) -> str:
        if x.op == "^":
            return f"({self.text(x.a, OPERAND)} != {self.text(x.b, OPERAND)})"
        inner = f"u32({self.text(x.a)}) {x.op} u32({self.text(x.b)})"
        return f"({inner})" if x.op in COMPARISONS else f"(({inner}) != 0u)"

    def floored(self, x: Binary, outer: int) -> str:
        """Division rounding down: a shift or mask for powers of two, the operator of WGSL for what is known not to be negative."""
        t, by = x.a.dtype, x.b.value if isinstance(x.b, Const) else 0
        if isinstance(by, int) and by > 0 and by & (by - 1) == 0 and t.bits >= 32:
            amount = (
                f">> {by.bit_length() - 1}u"
                if x.op == "//"
                else f"& {by - 1}{'u' if t.kind == 'uint' else ''}"
            )
            return f"({self.text(x.a, OPERAND)} {amount})"
        signed = t.kind == "int" and (
            self.memory.addresses.negative(x.a) or self.memory.addresses.negative(x.b)
        )
        if by and not signed:
            inner = f"{self.text(x.a, PRODUCT)} {'/' if x.op == '//' else '%'} {self.text(x.b, OPERAND)}"
            return f"({inner})" if outer > PRODUCT else inner
        name = self.function("floordiv" if x.op == "//" else "floormod", t)
        return f"{name}({self.text(x.a)}, {self.text(x.b)})"

    def unary(self, x: Unary) -> str:
        t = x.value.dtype
        if x.op == "not":
            return f"!({self.text(x.value)})"
        if x.op == "-" and t.kind == "uint":
            return self.scalars.wrapped(f"(0u - {self.text(x.value, OPERAND)})", t)
        if x.op == "~" and t.is_bool:
            return f"!({self.text(x.value)})"
        inner = f"({x.op}({self.widened(x.value)}))"
        return self.scalars.rounded(self.scalars.wrapped(inner, t), t)

    def cast(self, value: Expr, to: DType) -> str:
        have, text = value.dtype, self.widened(value)
        source = "f32" if have.is_float else self.scalars.register(have)
        if to.is_bool:
            return text if have.is_bool else f"({text} != {ZERO[source]})"
        if to.is_float:
            return self.scalars.rounded(text if source == "f32" else f"f32({text})", to)
        target = self.scalars.register(to)
        if have.is_float and to.bits < 32:
            text, source = f"i32({text})", "i32"  # what is negative wraps, as it does from a wider integer
        converted = text if source == target else f"{target}({text})"
        return converted if to.holds(have) else self.scalars.wrapped(converted, to)

    def bitcast(self, x: Bitcast) -> str:
        have, to = x.value.dtype, x.type
        if have.is_bool or to.is_bool:
            return self.cast(x.value, to)
        return self.scalars.taken(f"({self.scalars.bits(self.text(x.value), have)})", "0", to)

    def function(self, name: str, t: DType) -> str:
        found = (FLOAT if t.is_float else INTEGER).get(name)
        if found is None:
            raise Unsupported(f"{name} of {t} is not there in WGSL")
        return found if t.is_float else found.replace("?", self.scalars.register(t))

    def call(self, x: Call) -> str:
        t = x.arguments[0].dtype
        text = f"{self.function(x.function, t)}({', '.join(self.widened(a) for a in x.arguments)})"
        if t.is_integer and t.bits < 32 and x.function in ("popcount", "clz"):
            text = f"{self.function(x.function, t)}({self.scalars.bits(self.text(x.arguments[0]), t)})"
            return f"{self.scalars.register(t)}({text})" + (
                f" - {32 - t.bits}" if x.function == "clz" else ""
            )
        if x.type == t and t.is_integer:
            return self.scalars.wrapped(text, t)
        return self.scalars.rounded(text, x.type) if x.type == t else text


def _float(value: float) -> str:
    """A float32 literal. Infinity and NaN are values of functions: WGSL refuses constants that are not finite."""
    if math.isnan(value):
        return "tile_nan()"
    try:
        (rounded,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:
        rounded = math.copysign(math.inf, value)
    if math.isinf(rounded):
        return "tile_infinity()" if rounded > 0 else "(-tile_infinity())"
    text = repr(rounded)
    text = text if any(c in text for c in ".e") else f"{text}.0"
    return f"({text}f)" if text.startswith("-") else f"{text}f"
