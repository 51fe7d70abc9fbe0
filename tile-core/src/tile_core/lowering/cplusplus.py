"""Functions of C++ that generated kernels call, the same for every vendor whose kernels are C++: text for the head of a source.

A backend's text comes first and defines what differs: the macros ``TILE_DEVICE`` (how a device function is declared), ``TILE_NAN``
and ``TILE_INFINITY``; ``tile_bits`` (of a float, as ``unsigned int``) and ``tile_float`` (back). Before ``ATOMICS`` also ``half_t``
and ``bfloat_t``, two bytes each, with ``float16_to_float``, ``float_to_float16`` and the same for ``bfloat16``; and
``tile_compare_and_swap(W* at, W expected, W value)`` for words of 2, 4 and 8 bytes.
"""

from __future__ import annotations

# What overflows becomes NaN in e4m3 (which has no infinity) and infinity in e5m2.
SCALARS = r"""
template <class To, class From> TILE_DEVICE To tile_bitcast(From x) {
  static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the width");
  union { From from; To to; } u;
  u.from = x;
  return u.to;
}

TILE_DEVICE unsigned short tile_to_bfloat16(float x) {
  unsigned int u = tile_bits(x);
  return x != x ? 0x7fff : (unsigned short)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

struct fp8_e4m3_t { unsigned char bits; };
struct fp8_e5m2_t { unsigned char bits; };

// A float of E exponent and M mantissa bits in a byte. FINITE: no infinity, only all ones is NaN.
template <int E, int M, bool FINITE> TILE_DEVICE float tile_from_byte(unsigned char b) {
  constexpr int bias = (1 << (E - 1)) - 1;
  int exponent = (b >> M) & ((1 << E) - 1), mantissa = b & ((1 << M) - 1);
  float magnitude;
  if (exponent == (1 << E) - 1 && (FINITE ? mantissa == (1 << M) - 1 : true))
    magnitude = FINITE || mantissa ? TILE_NAN : TILE_INFINITY;
  else if (exponent == 0)
    magnitude = (float)mantissa * tile_float((unsigned int)(127 + 1 - bias - M) << 23);
  else
    magnitude = tile_float((unsigned int)(exponent + 127 - bias) << 23 | (unsigned int)mantissa << (23 - M));
  return b & 0x80 ? -magnitude : magnitude;
}
template <int E, int M, bool FINITE> TILE_DEVICE unsigned char tile_to_byte(float x) {
  constexpr int bias = (1 << (E - 1)) - 1;
  unsigned int u = tile_bits(x), sign = u >> 24 & 0x80, bits = u & 0x7fffffff;
  constexpr unsigned char nan = FINITE ? 0x7f : 0x7e;
  constexpr unsigned char over = FINITE ? 0x7f : ((1 << E) - 1) << M;
  if (bits > 0x7f800000) return sign | nan;
  int exponent = (int)(bits >> 23) - 127 + bias;
  unsigned int code;
  if (exponent <= 0) {
    // subnormal: the float's adder rounds to nearest even at the weight of the last place
    float step = tile_float((unsigned int)(127 + 1 - bias - M + 23) << 23);
    code = tile_bits(tile_float(bits) + step) - tile_bits(step);
  } else {
    unsigned int rounded = bits + ((1u << (22 - M)) - 1) + (bits >> (23 - M) & 1);
    code = (rounded >> (23 - M)) - ((unsigned int)(127 - bias) << M);
  }
  constexpr unsigned int top = FINITE ? 0x7e : over - 1;
  return (unsigned char)(sign | (code > top ? over : code));
}
TILE_DEVICE float float8_e4m3fn_to_float(fp8_e4m3_t x) { return tile_from_byte<4, 3, true>(x.bits); }
TILE_DEVICE float float8_e5m2_to_float(fp8_e5m2_t x) { return tile_from_byte<5, 2, false>(x.bits); }
TILE_DEVICE fp8_e4m3_t float_to_float8_e4m3fn(float x) { return {tile_to_byte<4, 3, true>(x)}; }
TILE_DEVICE fp8_e5m2_t float_to_float8_e5m2(float x) { return {tile_to_byte<5, 2, false>(x)}; }

template <class T> TILE_DEVICE T tile_floordiv(T a, T b) {
  if (b == 0) return 0;
  T q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}
template <class T> TILE_DEVICE T tile_floormod(T a, T b) { return b == 0 ? 0 : a - tile_floordiv(a, b) * b; }
template <class T> TILE_DEVICE T tile_min(T a, T b) { return b < a ? b : a; }
template <class T> TILE_DEVICE T tile_max(T a, T b) { return a < b ? b : a; }
template <class T> TILE_DEVICE T tile_abs(T a) { return a < 0 ? -a : a; }
template <class T> TILE_DEVICE T tile_power(T a, T b) {
  T out = 1;
  for (; b > 0; b >>= 1, a *= a)
    if (b & 1) out *= a;
  return out;
}
TILE_DEVICE float tile_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
TILE_DEVICE double tile_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
template <class T> TILE_DEVICE bool tile_isnan(T x) { return x != x; }
TILE_DEVICE bool tile_isinf(float x) { return fabsf(x) == TILE_INFINITY; }
TILE_DEVICE bool tile_isinf(double x) { return fabs(x) == (double)TILE_INFINITY; }
template <class T> TILE_DEVICE bool tile_isfinite(T x) { return x - x == 0; }
TILE_DEVICE float tile_truncdiv(float a, float b) { return truncf(a / b); }
TILE_DEVICE double tile_truncdiv(double a, double b) { return trunc(a / b); }
TILE_DEVICE float tile_float_floordiv(float a, float b) { return floorf(a / b); }
TILE_DEVICE double tile_float_floordiv(double a, double b) { return floor(a / b); }
TILE_DEVICE float tile_float_floormod(float a, float b) { return a - floorf(a / b) * b; }
TILE_DEVICE double tile_float_floormod(double a, double b) { return a - floor(a / b) * b; }
"""

# Overloads for the types that the hardware has atomics of may follow.
ATOMICS = r"""
// Atomics of every width by compare and swap of a word of its size.
template <int BYTES> struct tile_word;
template <> struct tile_word<2> { using type = unsigned short; };
template <> struct tile_word<4> { using type = unsigned int; };
template <> struct tile_word<8> { using type = unsigned long long; };

struct tile_op_add {
  template <class T> TILE_DEVICE T apply(T a, T b) { return a + b; }
  TILE_DEVICE half_t apply(half_t a, half_t b) { return float_to_float16(float16_to_float(a) + float16_to_float(b)); }
  TILE_DEVICE bfloat_t apply(bfloat_t a, bfloat_t b) { return float_to_bfloat16(bfloat16_to_float(a) + bfloat16_to_float(b)); }
};
struct tile_op_max {
  template <class T> TILE_DEVICE T apply(T a, T b) { return a < b ? b : a; }
  TILE_DEVICE float apply(float a, float b) { return fmaxf(a, b); }
  TILE_DEVICE double apply(double a, double b) { return fmax(a, b); }
  TILE_DEVICE half_t apply(half_t a, half_t b) { return float_to_float16(fmaxf(float16_to_float(a), float16_to_float(b))); }
  TILE_DEVICE bfloat_t apply(bfloat_t a, bfloat_t b) {
    return float_to_bfloat16(fmaxf(bfloat16_to_float(a), bfloat16_to_float(b)));
  }
};
struct tile_op_min {
  template <class T> TILE_DEVICE T apply(T a, T b) { return b < a ? b : a; }
  TILE_DEVICE float apply(float a, float b) { return fminf(a, b); }
  TILE_DEVICE double apply(double a, double b) { return fmin(a, b); }
  TILE_DEVICE half_t apply(half_t a, half_t b) { return float_to_float16(fminf(float16_to_float(a), float16_to_float(b))); }
  TILE_DEVICE bfloat_t apply(bfloat_t a, bfloat_t b) {
    return float_to_bfloat16(fminf(bfloat16_to_float(a), bfloat16_to_float(b)));
  }
};
struct tile_op_or { template <class T> TILE_DEVICE T apply(T a, T b) { return a | b; } };
struct tile_op_and { template <class T> TILE_DEVICE T apply(T a, T b) { return a & b; } };
struct tile_op_xor { template <class T> TILE_DEVICE T apply(T a, T b) { return a ^ b; } };
struct tile_op_store { template <class T> TILE_DEVICE T apply(T, T b) { return b; } };

template <class Op, class T> TILE_DEVICE T tile_swap(T* at, T value) {
  using W = typename tile_word<sizeof(T)>::type;
  W seen = *(volatile W*)at, expected;
  do {
    expected = seen;
    seen = tile_compare_and_swap((W*)at, expected, tile_bitcast<W>(Op::apply(tile_bitcast<T>(expected), value)));
  } while (seen != expected);
  return tile_bitcast<T>(seen);
}
template <class T> TILE_DEVICE T tile_atomic_add(T* at, T value) { return tile_swap<tile_op_add>(at, value); }
template <class T> TILE_DEVICE T tile_atomic_max(T* at, T value) { return tile_swap<tile_op_max>(at, value); }
template <class T> TILE_DEVICE T tile_atomic_min(T* at, T value) { return tile_swap<tile_op_min>(at, value); }
template <class T> TILE_DEVICE T tile_atomic_or(T* at, T value) { return tile_swap<tile_op_or>(at, value); }
template <class T> TILE_DEVICE T tile_atomic_and(T* at, T value) { return tile_swap<tile_op_and>(at, value); }
template <class T> TILE_DEVICE T tile_atomic_xor(T* at, T value) { return tile_swap<tile_op_xor>(at, value); }
template <class T> TILE_DEVICE T tile_atomic_store(T* at, T value) { return tile_swap<tile_op_store>(at, value); }
template <class T> TILE_DEVICE T tile_atomic_load(T* at) { return *(volatile T*)at; }
"""
