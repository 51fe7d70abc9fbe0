"""Scalar types in WGSL: the type of a register that holds a value, and how a value lies in the 32-bit words of memory."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.dtypes import DType
from tile_core.errors import Unsupported

WORD = 32

# Registers. Narrow integers are kept as the number they are, narrow floats that WGSL lacks as the float32 they round to.
REGISTERS = {
    "bool": "bool",
    "int8": "i32",
    "int16": "i32",
    "int32": "i32",
    "uint8": "u32",
    "uint16": "u32",
    "uint32": "u32",
    "float16": "f16",
    "bfloat16": "f32",
    "float32": "f32",
    "tfloat32": "f32",
}
ZERO = {"bool": "false", "i32": "0", "u32": "0u", "f32": "0.0f", "f16": "0.0h"}
CELL_BYTES = {"i32": 4, "u32": 4, "f32": 4, "f16": 2}


@dataclass(frozen=True)
class Scalars:
    """``half``: the device has the feature ``shader-f16``. Without it a float16 is kept as float32 and stored in half a word."""

    half: bool

    def register(self, t: DType) -> str:
        """The WGSL type of a value. Raises ``Unsupported`` for types of 64 bits and exotic floats."""
        found = REGISTERS.get(t.name)
        if found is None:
            raise Unsupported(
                f"no value of type {t} in WGSL",
                why="WGSL computes with 32-bit numbers, and with float16 where the device has it",
                help=f"types that work: {', '.join(REGISTERS)}",
            )
        return "f32" if found == "f16" and not self.half else found

    def width(self, t: DType) -> int:
        """Bits of an element in memory."""
        return 8 if t.is_bool else t.bits

    def packed(self, t: DType) -> bool:
        """Whether memory holds several of them in one word, since WGSL has no storable type of that width."""
        return self.width(t) < WORD and self.register(t) != "f16"

    def narrow(self, t: DType) -> bool:
        """Whether it is a float that is computed with as float32 and rounded after each step."""
        return t.is_float and t.bits < WORD

    def widened(self, text: str, t: DType) -> str:
        """A value as what it is computed in."""
        return f"f32({text})" if self.register(t) == "f16" else text

    def rounded(self, text: str, t: DType) -> str:
        """A float32 as a value of ``t``."""
        if not self.narrow(t):
            return text
        return f"f16({text})" if self.register(t) == "f16" else f"tile_round_{t.name}({text})"

    def wrapped(self, text: str, t: DType) -> str:
        """A number of 32 bits as a value of a narrower integer type: what is too large wraps."""
        if not t.is_integer or t.bits >= WORD:
            return text
        return (
            f"extractBits({text}, 0u, {t.bits}u)"
            if t.kind == "int"
            else f"({text} & {hex((1 << t.bits) - 1)}u)"
        )

    def taken(self, word: str, slot: str, t: DType) -> str:
        """The element in the place ``slot`` (an i32) of a word (a u32)."""
        bits = self.width(t)
        if bits == WORD:
            register = self.register(t)
            return word if register == "u32" else f"bitcast<{register}>({word})"
        shift = _shift(slot, bits)
        if t.is_float:
            part = word if shift == "0u" else f"({word} >> {shift})"
            if t.name == "bfloat16":
                return f"bitcast<f32>({part} << 16u)"
            half = f"unpack2x16float({part}).x"
            return f"f16({half})" if self.register(t) == "f16" else half
        if t.kind == "int":
            return f"extractBits(bitcast<i32>({word}), {shift}, {bits}u)"
        value = f"extractBits({word}, {shift}, {bits}u)"
        return f"({value} != 0u)" if t.is_bool else value

    def bits(self, value: str, t: DType) -> str:
        """A value as the lowest bits of a u32; the rest is zero."""
        bits = self.width(t)
        register = self.register(t)
        if bits == WORD:
            return value if register == "u32" else f"bitcast<u32>({value})"
        if t.is_bool:
            return f"select(0u, 1u, {value})"
        if t.name == "bfloat16":
            return f"(bitcast<u32>({value}) >> 16u)"
        if t.is_float:
            return f"pack2x16float(vec2<f32>({self.widened(value, t)}, 0.0f))"
        return value if t.kind == "uint" else f"(bitcast<u32>({value}) & {hex((1 << bits) - 1)}u)"

    def placed(self, value: str, slot: str, t: DType) -> str:
        """The same, shifted to its place in the word."""
        shift = _shift(slot, self.width(t))
        return self.bits(value, t) if shift == "0u" else f"({self.bits(value, t)} << {shift})"

    def mask(self, slot: str, t: DType) -> str:
        """The bits of a word that an element has."""
        full = f"{hex((1 << self.width(t)) - 1)}u"
        shift = _shift(slot, self.width(t))
        return full if shift == "0u" else f"({full} << {shift})"


def _shift(slot: str, bits: int) -> str:
    return f"{int(slot) * bits}u" if slot.isdigit() else f"(u32({slot}) * {bits}u)"
