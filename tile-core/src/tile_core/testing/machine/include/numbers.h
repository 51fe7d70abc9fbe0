// Small floating types in software: bits to float and back, rounding to nearest even.
#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>

namespace numbers {

inline uint32_t bits_of(float x) { uint32_t u; memcpy(&u, &x, 4); return u; }
inline float float_of(uint32_t u) { float x; memcpy(&x, &u, 4); return x; }

// A format of 1 sign bit, `exponent` and `mantissa` bits.
struct Format {
  int exponent, mantissa;
  bool infinities;                    // e4m3 has none: its largest exponent is of numbers, but for one NaN
  bool saturates;                     // conversions clamp to the largest finite number
};
constexpr Format HALF = {5, 10, true, false}, BRAIN = {8, 7, true, false}, E4M3 = {4, 3, false, true}, E5M2 = {5, 2, true, true};

inline double decode(uint32_t v, Format f) {
  const int bias = (1 << (f.exponent - 1)) - 1, top = (1 << f.exponent) - 1;
  const int e = (v >> f.mantissa) & top, m = v & ((1 << f.mantissa) - 1);
  const double sign = (v >> (f.exponent + f.mantissa)) & 1 ? -1 : 1;
  if (e == top && f.infinities) return m ? NAN : sign * INFINITY;
  if (e == top && !f.infinities && m == (1 << f.mantissa) - 1) return NAN;
  return sign * (e ? ldexp(1 + ldexp(m, -f.mantissa), e - bias) : ldexp(m, 1 - bias - f.mantissa));
}

inline uint32_t encode(double x, Format f) {
  const int bias = (1 << (f.exponent - 1)) - 1, top = (1 << f.exponent) - 1, ones = (1 << f.mantissa) - 1;
  const uint32_t sign = (uint32_t)(signbit(x) ? 1 : 0) << (f.exponent + f.mantissa);
  const uint32_t nan = f.exponent == 8 || f.mantissa == 10 ? (uint32_t)((1 << (f.exponent + f.mantissa)) - 1) : 0x7f;
  if (isnan(x)) return nan;
  const uint32_t largest = f.infinities ? (uint32_t)((top - 1) << f.mantissa | ones) : (uint32_t)(top << f.mantissa | (ones - 1));
  const uint32_t over = f.saturates ? largest : (uint32_t)(top << f.mantissa);
  const double a = fabs(x);
  if (isinf(a)) return sign | over;
  int e;
  frexp(a, &e);
  e = a == 0 || e - 1 < 1 - bias ? 1 - bias : e - 1;
  const double units = nearbyint(ldexp(a, f.mantissa - e));   // to nearest even, in units of the last place
  const uint32_t v = (uint32_t)units + ((uint32_t)(e + bias - 1) << f.mantissa);   // carries into the exponent by itself
  return sign | (v > largest ? over : v);
}

inline float half_to_float(uint32_t v) { return (float)decode(v & 0xffff, HALF); }
inline uint16_t float_to_half(float x) { return (uint16_t)encode(x, HALF); }
inline float brain_to_float(uint32_t v) { return float_of(v << 16); }
inline uint16_t float_to_brain(float x) {
  uint32_t u = bits_of(x);
  if (x != x) return 0x7fff;
  return (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}
inline float e4m3_to_float(uint32_t v) { return (float)decode(v & 0xff, E4M3); }
inline float e5m2_to_float(uint32_t v) { return (float)decode(v & 0xff, E5M2); }
inline uint8_t float_to_e4m3(float x) { return (uint8_t)encode(x, E4M3); }
inline uint8_t float_to_e5m2(float x) { return (uint8_t)encode(x, E5M2); }

// tfloat32: to nearest, ties away from zero, 10 bits of mantissa
inline uint32_t float_to_tf32(float x) {
  const uint32_t u = bits_of(x);
  return (u & 0x7f800000) == 0x7f800000 ? u : (u + 0x1000) & ~0x1fffu;
}

// of packed pairs; `f` works on floats
template <class F> inline uint32_t half2(F f, uint32_t a, uint32_t b, uint32_t c = 0) {
  const uint32_t lo = float_to_half(f(half_to_float(a), half_to_float(b), half_to_float(c)));
  return lo | (uint32_t)float_to_half(f(half_to_float(a >> 16), half_to_float(b >> 16), half_to_float(c >> 16))) << 16;
}
template <class F> inline uint32_t brain2(F f, uint32_t a, uint32_t b, uint32_t c = 0) {
  const uint32_t lo = float_to_brain(f(brain_to_float(a & 0xffff), brain_to_float(b & 0xffff), brain_to_float(c & 0xffff)));
  return lo | (uint32_t)float_to_brain(f(brain_to_float(a >> 16), brain_to_float(b >> 16), brain_to_float(c >> 16))) << 16;
}
// the exact product in double and one rounding of the sum to double: good for 24-bit results but for rare double rounding
inline float add_(float a, float b, float) { return a + b; }
inline float sub_(float a, float b, float) { return a - b; }
inline float mul_(float a, float b, float) { return a * b; }
inline float fma_(float a, float b, float c) { return fmaf(a, b, c); }
inline float max_(float a, float b, float) { return fmaxf(a, b); }
inline float min_(float a, float b, float) { return fminf(a, b); }

}  // namespace numbers
