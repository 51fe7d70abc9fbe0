"""Writes one LLVM function: Python operators on values become instructions in SSA form."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

FLOAT_TYPES = ("half", "float", "double")
_VECTOR = re.compile(r"<(\d+) x (\w+)>")


def element(type: str) -> str:
    """The type of one lane."""
    m = _VECTOR.match(type)
    return m[2] if m else type


def vector(lanes: int, type: str) -> str:
    return type if lanes == 1 else f"<{lanes} x {type}>"


def lanes_of(type: str) -> int:
    m = _VECTOR.match(type)
    return int(m[1]) if m else 1


def like(type: str, lane: str) -> str:
    """``lane`` with as many lanes as ``type`` has."""
    return vector(lanes_of(type), lane)


def mangled(type: str) -> str:
    """The suffix that overloaded intrinsics carry for ``type``."""
    name = {"half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}.get(element(type), element(type))
    return name if lanes_of(type) == 1 else f"v{lanes_of(type)}{name}"


def literal(value: int | float, type: str) -> str:
    """A constant of ``type``; a vector gets it in every lane. Floats are rounded to the type."""
    lane = element(type)
    if lane in FLOAT_TYPES:
        x = float(value)
        if lane == "float":
            x = struct.unpack("f", struct.pack("f", x))[0]
        text = f"0x{struct.unpack('Q', struct.pack('d', x))[0]:016X}"
    elif lane == "i1":
        text = "true" if value else "false"
    else:
        text = str(int(value))
    return text if lanes_of(type) == 1 else f"splat ({lane} {text})"


@dataclass(frozen=True)
class Value:
    """A value inside a function. Operators take values of the same type, or numbers."""

    function: Function = field(repr=False)
    text: str
    type: str

    def __add__(self, other: Value | float) -> Value:
        return self.function.binary("add", self, other)

    def __radd__(self, other: float) -> Value:
        return self.function.binary("add", self.function.const(other, self.type), self)

    def __sub__(self, other: Value | float) -> Value:
        return self.function.binary("sub", self, other)

    def __rsub__(self, other: float) -> Value:
        return self.function.binary("sub", self.function.const(other, self.type), self)

    def __mul__(self, other: Value | float) -> Value:
        return self.function.binary("mul", self, other)

    def __truediv__(self, other: Value | float) -> Value:
        return self.function.binary("div", self, other)

    def __rtruediv__(self, other: float) -> Value:
        return self.function.binary("div", self.function.const(other, self.type), self)

    def __and__(self, other: Value | int) -> Value:
        return self.function.binary("and", self, other)

    def __or__(self, other: Value | int) -> Value:
        return self.function.binary("or", self, other)

    def __xor__(self, other: Value | int) -> Value:
        return self.function.binary("xor", self, other)

    def __lshift__(self, other: Value | int) -> Value:
        return self.function.binary("shl", self, other)

    def __rshift__(self, other: Value | int) -> Value:
        """Logical shift to the right."""
        return self.function.binary("lshr", self, other)

    def __neg__(self) -> Value:
        if element(self.type) in FLOAT_TYPES:
            return self.function.emit(self.type, f"fneg {self.type} {self.text}")
        return 0 - self

    def compare(self, how: str, other: Value | float) -> Value:
        """``how``: ``olt``, ``ogt``, ``uno``, ... for floats; ``slt``, ``ult``, ``eq``, ``ne`` ... for integers."""
        kind = "fcmp" if element(self.type) in FLOAT_TYPES else "icmp"
        b = self.function.value(other, self.type)
        return self.function.emit(like(self.type, "i1"), f"{kind} {how} {self.type} {self.text}, {b.text}")

    def select(self, then: Value | float, other: Value | float, type: str = "") -> Value:
        """This (a bool) ? then : other."""
        known = then.type if isinstance(then, Value) else other.type if isinstance(other, Value) else type
        a, b = self.function.value(then, known), self.function.value(other, known)
        return self.function.emit(
            known, f"select {self.type} {self.text}, {known} {a.text}, {known} {b.text}"
        )

    def convert(self, how: str, type: str) -> Value:
        """An LLVM conversion: ``bitcast``, ``zext``, ``trunc``, ``fptosi``, ..."""
        return self.function.emit(type, f"{how} {self.type} {self.text} to {type}")


SPELLED = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}


@dataclass
class Function:
    """A function being written. ``declared`` collects the intrinsics it calls, ``needs`` other prelude functions."""

    name: str
    result: str
    parameters: tuple[tuple[str, str], ...]
    attributes: str = "alwaysinline"
    lines: list[str] = field(default_factory=list)
    declared: dict[str, str] = field(default_factory=dict)
    needs: dict[str, None] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def argument(self, index: int) -> Value:
        type, name = self.parameters[index]
        return Value(self, f"%{name}", type.partition(" ")[0] if type.startswith("ptr") else type)

    def const(self, value: int | float, type: str) -> Value:
        return Value(self, literal(value, type), type)

    def value(self, value: Value | float, type: str) -> Value:
        return value if isinstance(value, Value) else self.const(value, type)

    def emit(self, type: str, text: str) -> Value:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}")
        return Value(self, f"%v{self.count}", type)

    def effect(self, text: str) -> None:
        """An instruction without a result."""
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def binary(self, op: str, a: Value, b: Value | float) -> Value:
        spelled = SPELLED[op] if element(a.type) in FLOAT_TYPES else op
        return self.emit(a.type, f"{spelled} {a.type} {a.text}, {self.value(b, a.type).text}")

    def call(self, name: str, type: str, *arguments: Value) -> Value:
        """A call of an intrinsic (``llvm.``) or of another prelude function (``tile.``)."""
        self._note(name, type, arguments)
        return self.emit(type, f"call {type} @{name}({_list(arguments)})")

    def run(self, name: str, *arguments: Value) -> None:
        """A call without a result."""
        self._note(name, "void", arguments)
        self.effect(f"call void @{name}({_list(arguments)})")

    def _note(self, name: str, type: str, arguments: tuple[Value, ...]) -> None:
        if name.startswith("tile."):
            self.needs.setdefault(name)
        else:
            self.declared[name] = f"declare {type} @{name}({', '.join(a.type for a in arguments)})"

    def intrinsic(self, name: str, *arguments: Value) -> Value:
        """``llvm.name`` overloaded on the type of its first argument, which it returns."""
        type = arguments[0].type
        return self.call(f"llvm.{name}.{mangled(type)}", type, *arguments)

    def extremum(self, kind: str, a: Value, x: Value) -> Value:
        """``min`` or ``max`` of floats: the operand that is not NaN, zeros of either sign.

        Not ``minnum``: LLVM 22.1 widens loops that reduce several values by it, and leaves out their last iterations.
        """
        name = f"llvm.{kind}imumnum.{mangled(a.type)}"
        self.declared[name] = f"declare {a.type} @{name}({a.type}, {a.type})"
        return self.emit(a.type, f"call nsz {a.type} @{name}({a.type} {a.text}, {a.type} {x.text})")

    def multiply_add(self, a: Value, b: Value, c: Value | float) -> Value:
        """``a * b + c``, in one rounding where the machine has the instruction."""
        c = self.value(c, a.type)
        if element(a.type) not in FLOAT_TYPES:
            return a * b + c
        return self.intrinsic("fmuladd", a, b, c)

    def polynomial(self, x: Value, coefficients: tuple[float, ...]) -> Value:
        """Horner's rule; the highest power comes first."""
        y = self.const(coefficients[0], x.type)
        for c in coefficients[1:]:
            y = self.multiply_add(y, x, self.const(c, x.type))
        return y

    def give(self, value: Value | None) -> Function:
        """The return instruction. Gives the function back."""
        self.effect("ret void" if value is None else f"ret {value.type} {value.text}")
        return self

    @property
    def text(self) -> str:
        parameters = ", ".join(f"{type} %{name}" for type, name in self.parameters)
        head = f"define internal {self.result} @{self.name}({parameters}) {self.attributes} #0 {{"
        return "\n".join((*self.constants.values(), head, "entry:", *self.lines, "}"))


def _list(arguments: tuple[Value, ...]) -> str:
    return ", ".join(f"{a.type} {a.text}" for a in arguments)
