"""Conversion between float32 and floats of 16 bits and fewer, bit by bit, as LLVM IR.

The rules are those of ``ml_dtypes`` (and numpy for float16): round to nearest even, then what the format has for overflow.
"""

from __future__ import annotations

from dataclasses import dataclass

from .writer import Function, Value


@dataclass(frozen=True)
class Format:
    """A float format of ``exponent`` and ``mantissa`` bits.

    ``special``: what the largest codes mean. ``ieee``: the top exponent is infinity and NaN; ``fn``: only the very top code
    is NaN; ``fnuz``: only the code of minus zero is NaN; ``finite``: no special codes, overflow gives the largest number.
    """

    exponent: int
    mantissa: int
    bias: int
    special: str

    @property
    def storage(self) -> int:
        """Bits of one element in memory."""
        return 16 if self.exponent + self.mantissa + 1 > 8 else 8

    @property
    def sign(self) -> int:
        """The bit that holds the sign."""
        return 1 << (self.exponent + self.mantissa)

    @property
    def infinity(self) -> int:
        """The smallest magnitude code that is no number."""
        every = self.sign - 1
        match self.special:
            case "ieee":
                return every & ~((1 << self.mantissa) - 1)
            case "fn":
                return every
            case _:
                return every + 1

    @property
    def overflow(self) -> int:
        """The code for numbers that are too large."""
        match self.special:
            case "fnuz":
                return self.sign
            case "finite":
                return self.infinity - 1
            case _:
                return self.infinity

    @property
    def nan(self) -> int:
        match self.special:
            case "ieee":
                return self.infinity | 1 << (self.mantissa - 1)
            case "fn":
                return self.infinity
            case _:
                return self.sign


FORMATS: dict[str, Format] = {
    "float16": Format(5, 10, 15, "ieee"),
    "bfloat16": Format(8, 7, 127, "ieee"),
    "float8_e3m4": Format(3, 4, 3, "ieee"),
    "float8_e4m3": Format(4, 3, 7, "ieee"),
    "float8_e4m3fn": Format(4, 3, 7, "fn"),
    "float8_e4m3fnuz": Format(4, 3, 8, "fnuz"),
    "float8_e4m3b11fnuz": Format(4, 3, 11, "fnuz"),
    "float8_e5m2": Format(5, 2, 15, "ieee"),
    "float8_e5m2fnuz": Format(5, 2, 16, "fnuz"),
    "float6_e2m3fn": Format(2, 3, 1, "finite"),
    "float6_e3m2fn": Format(3, 2, 3, "finite"),
    "float4_e2m1fn": Format(2, 1, 1, "finite"),
    "float4_e2m1_unpacked": Format(2, 1, 1, "finite"),
}
POWERS = ("float8_e8m0fnu",)  # an exponent alone: 2**(code - 127), 255 is NaN
HARDWARE_HALF = frozenset(("f16c", "fp-armv8"))  # features with instructions that convert float16
QUIET_NAN = 0x7FC00000


def storage_bits(type_name: str) -> int:
    """Bits of one element in memory; 0 for a type that is no narrow float."""
    if type_name in POWERS:
        return 8
    return FORMATS[type_name].storage if type_name in FORMATS else 0


def define(name: str, operation: str, type_name: str, features: frozenset[str]) -> Function | None:
    """``tile.decode.<type>`` (bits to float), ``tile.encode.<type>`` (float to bits) or ``tile.round.<type>``."""
    if operation not in ("decode", "encode", "round") or (
        type_name not in FORMATS and type_name not in POWERS
    ):
        return None
    bits = f"i{FORMATS[type_name].storage if type_name in FORMATS else 8}"
    b = Function(
        name, bits if operation == "encode" else "float", ((bits if operation == "decode" else "float", "x"),)
    )
    x = b.argument(0)
    if operation == "round":
        code = b.call(f"tile.encode.{type_name}", bits, x)
        return b.give(b.call(f"tile.decode.{type_name}", "float", code))
    if type_name in POWERS:
        return b.give(_decode_power(b, x) if operation == "decode" else _encode_power(b, x))
    if type_name == "float16" and features & HARDWARE_HALF:
        return b.give(_hardware_half(x, operation))
    form = FORMATS[type_name]
    return b.give(_decode(b, x, form) if operation == "decode" else _encode(b, x, form))


def _hardware_half(x: Value, operation: str) -> Value:
    if operation == "decode":
        return x.convert("bitcast", "half").convert("fpext", "float")
    return x.convert("fptrunc", "half").convert("bitcast", "i16")


def _decode(b: Function, x: Value, form: Format) -> Value:
    wide = x.convert("zext", "i32")
    magnitude = wide & (form.sign - 1)
    sign = (wide & form.sign) << (31 - form.exponent - form.mantissa)
    if form.exponent == 8:  # bfloat16: the upper half of a float32
        return (wide << 16).convert("bitcast", "float")
    # the bits at the place of a float32, then a multiplication that moves the exponent and normalises denormals
    placed = (magnitude << (23 - form.mantissa)).convert("bitcast", "float")
    number = (placed * 2.0 ** (127 - form.bias)).convert("bitcast", "i32")
    match form.special:
        case "ieee":
            payload = (magnitude << (23 - form.mantissa)) | 0x7F800000
            number = magnitude.compare("uge", form.infinity).select(payload, number)
        case "fn":
            number = magnitude.compare("eq", form.infinity).select(QUIET_NAN, number)
        case "fnuz":
            number = wide.compare("eq", form.sign).select(QUIET_NAN, number)
        case _:
            pass
    return (number | sign).convert("bitcast", "float")


def _encode(b: Function, x: Value, form: Format) -> Value:
    bits = x.convert("bitcast", "i32")
    magnitude = bits & 0x7FFFFFFF
    shift = 23 - form.mantissa
    # round to nearest even at the lowest bit kept, then move the exponent
    odd = (magnitude >> shift) & 1
    normal = ((magnitude + ((1 << (shift - 1)) - 1) + odd) >> shift) - ((127 - form.bias) << form.mantissa)
    code = normal
    if form.exponent < 8:
        # below the smallest normal number: adding a large power of two makes the float adder round at the right bit
        least = (127 - form.bias + 1) << 23
        magic = 2.0 ** (1 - form.bias - form.mantissa + 23)
        shifted = magnitude.convert("bitcast", "float") + magic
        small = shifted.convert("bitcast", "i32") - b.const(magic, "float").convert("bitcast", "i32")
        code = magnitude.compare("ult", least).select(small, normal)
    if form.special != "ieee" or form.exponent < 8:
        code = magnitude.compare(
            "uge", (form.infinity + ((127 - form.bias) << form.mantissa)) << shift
        ).select(form.overflow, code)
        code = code.compare("sge", form.infinity).select(form.overflow, code)
    code = magnitude.compare("ugt", 0x7F800000).select(form.nan, code)
    sign = (bits >> (31 - form.exponent - form.mantissa)) & form.sign
    if form.special == "fnuz":
        sign = code.compare("eq", 0).select(0, sign)
    if form.special == "finite":  # ml_dtypes gives minus zero for NaN, plus zero for NaN with a sign
        return (code ^ sign).convert("trunc", f"i{form.storage}")
    return (code | sign).convert("trunc", f"i{form.storage}")


def _decode_power(b: Function, x: Value) -> Value:
    wide = x.convert("zext", "i32")
    number = wide.compare("eq", 0).select(0x00400000, wide << 23)  # 2**-127 is a denormal
    return wide.compare("eq", 255).select(QUIET_NAN, number).convert("bitcast", "float")


def _encode_power(b: Function, x: Value) -> Value:
    bits = x.convert("bitcast", "i32")
    rounded = (
        bits + 0x00400000
    ) >> 23  # ties go up, as in ml_dtypes: there is no mantissa that could be even
    least = b.call("llvm.umax.i32", "i32", rounded, b.const(1, "i32"))
    # ml_dtypes rounds every denormal above 2**-127 up
    code = bits.compare("ule", 0x00400000).select(0, least)
    invalid = bits.compare("sle", 0)  # zero, and everything with a sign
    code = bits.compare("uge", 0x7F800000).select(255, code)
    return invalid.select(255, code).convert("trunc", "i8")
