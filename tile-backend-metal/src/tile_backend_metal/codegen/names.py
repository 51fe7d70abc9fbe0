"""Names that a kernel's own variables may not have: words of MSL, macros of its headers, and functions of generated sources."""

from __future__ import annotations

import re

from tile_core.lowering.identifiers import CPLUSPLUS

from .atomics import ATOMICS, OPERATIONS, PART
from .base import SECTIONS
from .matrix_unit import TEXT
from .moves import SHUFFLES, all_moves

# MSL 1.5, 2, 4, 5
WORDS = """
    kernel vertex fragment mesh object visible stitchable intersection
    device constant threadgroup threadgroup_imageblock thread ray_data object_data
    metal half bfloat uchar ushort uint ulong size_t ptrdiff_t vec matrix packed_vec sampler texture as_type access simd quad
    tile_arena tile_block tile_thread
"""
SCALARS = (
    "bool",
    "char",
    "uchar",
    "short",
    "ushort",
    "int",
    "uint",
    "long",
    "ulong",
    "half",
    "bfloat",
    "float",
)
SIZES = (2, 3, 4)
VECTORS = frozenset(f"{t}{n}" for t in SCALARS for n in SIZES)
MATRICES = frozenset(f"{t}{n}x{m}" for t in ("half", "float") for n in SIZES for m in SIZES)

# 2.1 and 6.5: macros, which no declaration hides
INTEGERS = ("CHAR", "SCHAR", "UCHAR", "SHRT", "USHRT", "INT", "UINT", "LONG", "ULONG")
FLOATS = ("FLT", "HALF", "BFLT")
LIMITS = (
    "DIG", "MANT_DIG", "MAX_10_EXP", "MAX_EXP", "MIN_10_EXP", "MIN_EXP", "RADIX", "MAX", "MIN", "EPSILON", "TRUE_MIN",
    "DECIMAL_DIG",
)  # fmt: skip
NUMBERS = (
    "E", "LOG2E", "LOG10E", "LN2", "LN10", "PI", "PI_2", "PI_4", "1_PI", "2_PI", "2_SQRTPI", "SQRT2", "SQRT1_2",
)  # fmt: skip
MACROS = frozenset(
    {
        *("CHAR_BIT", *(f"{t}_{end}" for t in INTEGERS for end in ("MIN", "MAX"))),
        *(f"{t}_{limit}" for t in FLOATS for limit in LIMITS),
        *(f"M_{number}_{t}" for number in NUMBERS for t in ("F", "H", "BF")),
        *("INFINITY", "NAN", "MAXFLOAT", "MAXHALF", "MAXBFLOAT", "HUGE_VALF", "HUGE_VALH", "HUGE_VALBF"),
        *("FP_ILOGB0", "FP_ILOGBNAN"),
    }
)

PRELUDE = "".join(
    (*(text for _, text in SECTIONS), OPERATIONS, PART, *ATOMICS.values(), SHUFFLES, TEXT, all_moves())
)
OWN = frozenset(re.findall(r"\b(?:tile_\w+|TILE_\w+|fp8_\w+|\w+_to_\w+)\b", PRELUDE))

RESERVED = CPLUSPLUS | frozenset(WORDS.split()) | VECTORS | MATRICES | MACROS | OWN
