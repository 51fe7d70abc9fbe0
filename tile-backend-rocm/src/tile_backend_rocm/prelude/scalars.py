"""Helpers of one value: bits of floats, conversions of 16-bit floats, approximate functions, products of bytes."""

from __future__ import annotations

from collections.abc import Iterator

from .device_function import Helper

CONVERT = "MI300 ISA, VOP1: V_CVT_F32_F16, V_CVT_F16_F32"
APPROXIMATE = "MI300 ISA, VOP1: V_EXP_F32, V_LOG_F32, V_RCP_F32, V_SIN_F32"
DOTS = "MI300 ISA, VOP3P: V_DOT4_I32_I8, V_DOT4_U32_U8; RDNA3 ISA, VOP3P: V_DOT4_I32_IU8"

FAST = (  # name, builtin, meaning on the host; v_exp and v_log are of base 2, v_sin and v_cos count turns
    ("exp2_fast", "exp2f", "exp2f(x)"),
    ("log2_fast", "logf", "log2f(x)"),
    ("rcp_fast", "rcpf", "1.0f / x"),
    ("sin_turns", "sinf", "(float)sin(6.283185307179586 * x)"),
    ("cos_turns", "cosf", "(float)cos(6.283185307179586 * x)"),
)


def _bits() -> Iterator[Helper]:
    isa = "no instruction"
    one, two = "return __builtin_bit_cast(u32, x);", "return __builtin_bit_cast(float, x);"
    yield Helper("bits_of_float", "u32", "float x", one, isa)
    yield Helper("float_of_bits", "float", "u32 x", two, isa)


def _rounding() -> Iterator[Helper]:
    # MI300 ISA: XF32 has ten bits of mantissa; nearest, ties to even, so that the unit has nothing to drop
    body = "const u32 u = bits_of_float(x); return x - x != 0 ? u : (u + 0xfffu + (u >> 13 & 1)) & ~0x1fffu;"
    yield Helper("round_xf32", "u32", "float x", body, "MI300 ISA, XF32", needs=("bits_of_float",))


def _halves() -> Iterator[Helper]:
    yield Helper(
        "half_to_float",
        "float",
        "u16 x",
        "return (float)__builtin_bit_cast(_Float16, x);",
        CONVERT,
        "return numbers::half_to_float(x);",
    )
    yield Helper(
        "float_to_half",
        "u16",
        "float x",
        "return __builtin_bit_cast(u16, (_Float16)x);",
        CONVERT,
        "return numbers::float_to_half(x);",
    )


def _fast() -> Iterator[Helper]:
    for name, builtin, host in FAST:
        device = f"return __builtin_amdgcn_{builtin}(x);"
        yield Helper(name, "float", "float x", device, APPROXIMATE, f"return {host};")


def _dots() -> Iterator[Helper]:
    words = "const u32 x = *reinterpret_cast<const u32*>(a), y = *reinterpret_cast<const u32*>(b);"
    host = "return hip::dot4(hip::load<u32>(a), hip::load<u32>(b), c, {});"
    given = "const void* a, const void* b, int c"
    signed = (
        "#if defined(__GFX9__)\n return __builtin_amdgcn_sdot4((int)x, (int)y, c, false);\n"
        "#else\n return __builtin_amdgcn_sudot4(true, (int)x, true, (int)y, c, false);\n#endif\n"
    )
    yield Helper("dot4_i8", "int", given, f"{words}\n{signed}", DOTS, host.format("true"))
    unsigned = "return (int)__builtin_amdgcn_udot4(x, y, (u32)c, false);"
    yield Helper("dot4_u8", "int", given, f"{words} {unsigned}", DOTS, host.format("false"))


def helpers() -> Iterator[Helper]:
    yield from _bits()
    yield from _rounding()
    yield from _halves()
    yield from _fast()
    yield from _dots()
