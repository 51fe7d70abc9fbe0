"""The head of every Metal source: scalar types and functions, on top of Apple's own headers.

Sections are those of "Metal Shading Language Specification" 4.0 (2025-06-05). Names of metal_stdlib are written out with
their namespace, so that nothing depends on what a ``using`` brings in.
"""

from __future__ import annotations

from tile_core.lowering.cplusplus import INTEGERS, SMALL_FLOATS

# 1.6.3: by default the compiler assumes that there is no NaN and no infinity. The launcher compiles without fast math; where
# the language has the pragma (3.2), the source asks for it itself.
HEAD = r"""
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif

#define TILE_DEVICE static inline
#define TILE_NAN as_type<float>(0x7fffffffu)
#define TILE_INFINITY as_type<float>(0x7f800000u)

TILE_DEVICE uint tile_bits(float x) { return as_type<uint>(x); }
TILE_DEVICE float tile_float(uint x) { return as_type<float>(x); }
"""

# 2.21: as_type works on scalars and vectors, not on structures.
BITCAST = r"""
template <class To, class From> struct tile_same_bits {
  static To of(From x) { return as_type<To>(x); }
};
template <class To> struct tile_same_bits<To, fp8_e4m3_t> {
  static To of(fp8_e4m3_t x) { return as_type<To>(x.bits); }
};
template <class To> struct tile_same_bits<To, fp8_e5m2_t> {
  static To of(fp8_e5m2_t x) { return as_type<To>(x.bits); }
};
template <class From> struct tile_same_bits<fp8_e4m3_t, From> {
  static fp8_e4m3_t of(From x) { return {as_type<uchar>(x)}; }
};
template <class From> struct tile_same_bits<fp8_e5m2_t, From> {
  static fp8_e5m2_t of(From x) { return {as_type<uchar>(x)}; }
};
template <class To, class From> TILE_DEVICE To tile_bitcast(From x) { return tile_same_bits<To, From>::of(x); }
"""

# 8.6: conversions to half and bfloat round to the nearest, ties to even.
HALVES = r"""
TILE_DEVICE float float16_to_float(half x) { return float(x); }
TILE_DEVICE half float_to_float16(float x) { return half(x); }
"""
BFLOATS = r"""
TILE_DEVICE float bfloat16_to_float(bfloat x) { return float(x); }
TILE_DEVICE bfloat float_to_bfloat16(float x) { return bfloat(x); }
"""

FLOATS = r"""
TILE_DEVICE float tile_sigmoid(float x) { return 1.0f / (1.0f + metal::precise::exp(-x)); }
TILE_DEVICE bool tile_isnan(float x) { return x != x; }
TILE_DEVICE bool tile_isinf(float x) { return metal::fabs(x) == TILE_INFINITY; }
TILE_DEVICE bool tile_isfinite(float x) { return x - x == 0.0f; }
TILE_DEVICE float tile_truncdiv(float a, float b) { return metal::trunc(a / b); }
TILE_DEVICE float tile_float_floordiv(float a, float b) { return metal::floor(a / b); }
TILE_DEVICE float tile_float_floormod(float a, float b) { return a - metal::floor(a / b) * b; }
TILE_DEVICE float tile_fast_rcp(float x) { return 1.0f / x; }
"""

# Each rounds by itself: without the pragma a product and a sum become one fma (1.6.3).
IEEE = r"""
TILE_DEVICE float tile_ieee_add(float a, float b) {
#pragma STDC FP_CONTRACT OFF
  return a + b;
}
TILE_DEVICE float tile_ieee_sub(float a, float b) {
#pragma STDC FP_CONTRACT OFF
  return a - b;
}
TILE_DEVICE float tile_ieee_mul(float a, float b) {
#pragma STDC FP_CONTRACT OFF
  return a * b;
}
TILE_DEVICE float tile_ieee_div(float a, float b) { return a / b; }
TILE_DEVICE float tile_ieee_sqrt(float x) { return metal::precise::sqrt(x); }
TILE_DEVICE float tile_ieee_rcp(float x) { return 1.0f / x; }
TILE_DEVICE float tile_ieee_rsqrt(float x) { return metal::precise::rsqrt(x); }
"""

# Metal has no erf. Below 1 a polynomial in the square, beyond it one of the logarithm of 1 - erf, both fitted at Chebyshev
# points; the relative error of either in float is below 2e-7.
ERF = r"""
TILE_DEVICE float tile_erf(float x) {
  const float a = metal::fabs(x), t = x * x;
  if (a < 1.0f) {
    float r = -9.67359e-06f;
    r = r * t + 0.00011268254f;
    r = r * t - 0.00084843964f;
    r = r * t + 0.0052210535f;
    r = r * t - 0.026865438f;
    r = r * t + 0.11283783f;
    r = r * t - 0.37612638f;
    r = r * t + 1.1283792f;
    return r * x;
  }
  const float b = a < 4.0f ? a : 4.0f;
  float r = -6.582862e-08f;
  r = r * b + 3.0952056e-06f;
  r = r * b - 6.0068807e-05f;
  r = r * b + 0.0006733376f;
  r = r * b - 0.005021045f;
  r = r * b + 0.026999498f;
  r = r * b - 0.11090742f;
  r = r * b - 0.63108885f;
  r = r * b - 1.1306045f;
  r = r * b + 0.00040050058f;
  r = 1.0f - metal::precise::exp(r);
  return x != x ? x : x < 0.0f ? -r : r;
}
"""

# (a word that needs it, text): a source has the sections whose words stand in its kernels, in this order
SECTIONS: tuple[tuple[str, str], ...] = (
    ("", HEAD),
    ("", SMALL_FLOATS),
    ("", INTEGERS),
    ("", BITCAST),
    ("", HALVES),
    ("bfloat", BFLOATS),
    ("", FLOATS),
    ("tile_ieee_", IEEE),
    ("tile_erf", ERF),
)
