"""The first part of every HIP source behind the prelude: scalar types and functions, without any include."""

from __future__ import annotations

from tile_core.lowering.cplusplus import ATOMICS, SCALARS

from .fnuz import FNUZ
from .mathematics import MATHEMATICS

# On the device clang makes instructions of these builtins, on the emulated machine they are the host's functions.
HEAD = r"""
#define TILE_NAN __builtin_nanf("")
#define TILE_INFINITY __builtin_inff()
#define expf __builtin_expf
#define fabsf __builtin_fabsf
#define fabs __builtin_fabs
#define truncf __builtin_truncf
#define trunc __builtin_trunc
#define floorf __builtin_floorf
#define floor __builtin_floor
#define fmaxf __builtin_fmaxf
#define fmax __builtin_fmax
#define fminf __builtin_fminf
#define fmin __builtin_fmin
TILE_DEVICE unsigned int tile_bits(float x) { return bits_of_float(x); }
TILE_DEVICE float tile_float(unsigned int x) { return float_of_bits(x); }
TILE_DEVICE double tile_exp(double x);
#define exp tile_exp
"""

WORDS = r"""
struct alignas(2) half_t { unsigned short bits; };
struct alignas(2) bfloat_t { unsigned short bits; };

TILE_DEVICE float float16_to_float(half_t x) { return half_to_float(x.bits); }
TILE_DEVICE half_t float_to_float16(float x) { return {float_to_half(x)}; }
TILE_DEVICE float bfloat16_to_float(bfloat_t x) { return tile_float((unsigned int)x.bits << 16); }
TILE_DEVICE bfloat_t float_to_bfloat16(float x) { return {tile_to_bfloat16(x)}; }

template <class T> TILE_DEVICE T tile_popcount(T a) {
  constexpr unsigned long long mask = sizeof(T) == 8 ? ~0ull : (1ull << 8 * (sizeof(T) % 8)) - 1;
  return __builtin_popcountll((unsigned long long)a & mask);
}
template <class T> TILE_DEVICE T tile_clz(T a) {
  constexpr int bits = 8 * sizeof(T);
  constexpr unsigned long long mask = bits == 64 ? ~0ull : (1ull << bits % 64) - 1;
  const unsigned long long u = (unsigned long long)a & mask;
  return u ? __builtin_clzll(u) - (64 - bits) : bits;
}

template <class W> TILE_DEVICE W tile_compare_and_swap(W* at, W expected, W value) { return atom_swap_if(at, expected, value); }
"""


def _own(op: str, *types: str) -> str:
    return "".join(
        f"TILE_DEVICE {t} tile_atomic_{op}({t}* at, {t} value) {{ return atom_{op}(at, value); }}\n"
        for t in types
    )


INTEGERS = ("int", "unsigned int", "long long", "unsigned long long")
# with the option -munsafe-fp-atomics clang makes one instruction of the floating additions
OWN_ATOMICS = (
    _own("add", "float", "double", *INTEGERS)
    + _own("max", *INTEGERS)
    + _own("min", *INTEGERS)
    + _own("or", *INTEGERS)
    + _own("and", *INTEGERS)
    + _own("xor", *INTEGERS)
)

BASE = HEAD + SCALARS + FNUZ + WORDS + MATHEMATICS + ATOMICS + OWN_ATOMICS
