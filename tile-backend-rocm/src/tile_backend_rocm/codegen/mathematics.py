"""Functions that AMD's GPUs have no instruction for and clang no builtin without device libraries, as C++ text.

Coefficients are least-squares fits on Chebyshev nodes (errors below 1e-8 relative) or terms of Taylor's series, to the last bit
of double. Reductions of angles are done in double: arguments up to 2**40 keep their digits.
"""

from __future__ import annotations

FLOATS = r"""
// A number near zero of the same sine up to the quarter that is given back.
TILE_DEVICE double tile_quarter(double x, int& quarter) {
  const double n = __builtin_rint(x * 0.6366197723675814);
  quarter = (int)((long long)n & 3);
  return __builtin_fma(n, -6.123233995736766e-17, __builtin_fma(n, -1.5707963267948966, x));
}
TILE_DEVICE float tile_sine_near(float x) {
  const float s = x * x;
  return x + x * s * (-0.166666667f + s * (0.00833333179f + s * (-0.000198400394f + s * 2.72438438e-06f)));
}
TILE_DEVICE float tile_cosine_near(float x) {
  const float s = x * x;
  return 1.0f - 0.5f * s + s * s * (0.0416666667f + s * (-0.00138888876f + s * (2.48005527e-05f + s * -2.72951389e-07f)));
}
TILE_DEVICE float tile_sin(float x) {
  int q;
  const float r = (float)tile_quarter(x, q), v = q & 1 ? tile_cosine_near(r) : tile_sine_near(r);
  return x - x != 0 ? TILE_NAN : q & 2 ? -v : v;
}
TILE_DEVICE float tile_cos(float x) {
  int q;
  const float r = (float)tile_quarter(x, q), v = q & 1 ? tile_sine_near(r) : tile_cosine_near(r);
  return x - x != 0 ? TILE_NAN : (q + 1) & 2 ? -v : v;
}
TILE_DEVICE float tile_tan(float x) {
  int q;
  const float r = (float)tile_quarter(x, q), s = tile_sine_near(r), c = tile_cosine_near(r);
  return x - x != 0 ? TILE_NAN : q & 1 ? -c / s : s / c;
}
TILE_DEVICE float tile_tanh(float x) {
  const float a = fabsf(x), s = x * x;
  if (a < 0.6f)
    return x + x * s * (-0.333333332f + s * (0.133333133f + s * (-0.0539616534f
           + s * (0.0217891075f + s * (-0.00841255361f + s * 0.00237351497f)))));
  const float v = 1.0f - 2.0f / (expf(2.0f * a) + 1.0f);
  return x != x ? x : x < 0 ? -v : v;
}
TILE_DEVICE float tile_erf(float x) {
  const float a = fabsf(x), s = x * x;
  if (a < 1.0f)
    return x * (1.12837917f + s * (-0.376126385f + s * (0.112837826f + s * (-0.0268654383f + s * (0.00522105341f
           + s * (-0.000848439652f + s * (0.000112682537f + s * -9.67359017e-06f)))))));
  const float t = 1.0f / (1.0f + 0.5f * a);
  const float q = -0.000112613511f + t * (0.284196539f + t * (0.265038221f + t * (0.325148672f + t * (-0.0441840035f
                  + t * (0.464375354f + t * (-0.369257308f + t * (0.0598317356f + t * 0.0150685743f)))))));
  const float v = a > 4.0f ? 1.0f : 1.0f - expf(-s) * q;
  return x != x ? x : x < 0 ? -v : v;
}
"""

DOUBLES = r"""
// 2**x for |x| up to 1100: a power of two by the bits of the exponent, in two steps so that subnormal results come out right.
TILE_DEVICE double tile_power_of_two(int n) { return __builtin_bit_cast(double, (unsigned long long)(1023 + n) << 52); }
TILE_DEVICE double tile_scaled(double x, int n) {
  const int half = n / 2;
  return x * tile_power_of_two(half) * tile_power_of_two(n - half);
}
// e**x for |x| < 0.4, less one
TILE_DEVICE double tile_small_exp(double x) {
  double sum = 0;
#pragma unroll
  for (int k = 16; k > 0; --k) sum = (sum + 1) * x / k;
  return sum;
}
TILE_DEVICE double tile_exp(double x) {
  if (x != x) return x;
  if (x > 709.79) return (double)TILE_INFINITY;
  if (x < -745.2) return 0;
  const double n = __builtin_rint(x * 1.4426950408889634);
  const double r = __builtin_fma(n, -2.3190468138462996e-17, __builtin_fma(n, -0.6931471805599453, x));
  return tile_scaled(1 + tile_small_exp(r), (int)n);
}
TILE_DEVICE double tile_exp2(double x) {
  if (x != x) return x;
  if (x >= 1024) return (double)TILE_INFINITY;
  if (x < -1075) return 0;
  const double n = __builtin_rint(x);
  return tile_scaled(1 + tile_small_exp((x - n) * 0.6931471805599453), (int)n);
}
TILE_DEVICE double tile_exp10(double x) {
  if (x != x) return x;
  if (x > 308.3) return (double)TILE_INFINITY;
  if (x < -323.4) return 0;
  const double n = __builtin_rint(x * 3.321928094887362);
  const double r = __builtin_fma(n, 2.8037281277851704e-18, __builtin_fma(n, -0.30102999566398120, x));
  return tile_scaled(1 + tile_small_exp(r * 2.302585092994046), (int)n);
}
// the exponent, and the logarithm of a mantissa in [sqrt(1/2), sqrt(2)) by the series of the hyperbolic tangent's inverse
TILE_DEVICE double tile_mantissa_log(double x, int& exponent) {
  exponent = 0;
  if (x < 2.2250738585072014e-308) x *= 18014398509481984.0, exponent = -54;
  const unsigned long long u = __builtin_bit_cast(unsigned long long, x);
  exponent += (int)(u >> 52) - 1023;
  double m = __builtin_bit_cast(double, (u & 0xfffffffffffffull) | 0x3ff0000000000000ull);
  if (m > 1.4142135623730951) m *= 0.5, ++exponent;
  const double s = (m - 1) / (m + 1), t = s * s;
  double sum = 0;
#pragma unroll
  for (int k = 21; k > 0; k -= 2) sum = sum * t + 2.0 / k;
  return s * sum;
}
TILE_DEVICE double tile_log_of(double x, double per_exponent, double per_log) {
  if (!(x > 0)) return x == 0 ? -(double)TILE_INFINITY : (double)TILE_NAN;
  if (x - x != 0) return x;
  int e;
  const double m = tile_mantissa_log(x, e);
  return __builtin_fma((double)e, per_exponent, m * per_log);
}
TILE_DEVICE double tile_log(double x) { return tile_log_of(x, 0.6931471805599453, 1); }
TILE_DEVICE double tile_log2(double x) { return tile_log_of(x, 1, 1.4426950408889634); }
TILE_DEVICE double tile_log10(double x) { return tile_log_of(x, 0.30102999566398120, 0.4342944819032518); }
TILE_DEVICE double tile_sine_series(double x) {
  double sum = 0;
#pragma unroll
  for (int k = 18; k > 0; k -= 2) sum = (1 + sum) * -(x * x) / (k * (k + 1));
  return x + x * sum;
}
TILE_DEVICE double tile_cosine_series(double x) {
  double sum = 0;
#pragma unroll
  for (int k = 17; k > 0; k -= 2) sum = (1 + sum) * -(x * x) / (k * (k + 1));
  return 1 + sum;
}
TILE_DEVICE double tile_sin(double x) {
  int q;
  const double r = tile_quarter(x, q), v = q & 1 ? tile_cosine_series(r) : tile_sine_series(r);
  return x - x != 0 ? (double)TILE_NAN : q & 2 ? -v : v;
}
TILE_DEVICE double tile_cos(double x) {
  int q;
  const double r = tile_quarter(x, q), v = q & 1 ? tile_sine_series(r) : tile_cosine_series(r);
  return x - x != 0 ? (double)TILE_NAN : (q + 1) & 2 ? -v : v;
}
TILE_DEVICE double tile_tan(double x) { return tile_sin(x) / tile_cos(x); }
TILE_DEVICE double tile_tanh(double x) {
  const double a = fabs(x);
  const double e = a < 0.19 ? tile_small_exp(2 * a) : tile_exp(2 * a) - 1;
  const double v = a > 20 ? 1 : e / (e + 2);
  return x != x ? x : x < 0 ? -v : v;
}
TILE_DEVICE double tile_erf(double x) {
  const double a = fabs(x);
  double term = a, sum = a;
  // terms are all positive: nothing cancels
  if (a < 6)
    for (int k = 1; k < 150 && term > sum * 1e-17; ++k) term *= 2 * a * a / (2 * k + 1), sum += term;
  const double v = a < 6 ? fmin(1.0, 1.1283791670955126 * tile_exp(-a * a) * sum) : 1;
  return x != x ? x : x < 0 ? -v : v;
}
"""

POWERS = r"""
TILE_DEVICE double tile_pow(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return (double)TILE_NAN;
  const bool whole = trunc(y) == y, odd = whole && fabs(y) < 9007199254740992.0 && ((long long)y & 1);
  if (x < 0 && !whole && y - y == 0 && x - x == 0) return (double)TILE_NAN;
  const double a = fabs(x);
  double v;
  if (a == 0) v = y < 0 ? (double)TILE_INFINITY : 0;
  else if (a == 1) v = 1;
  else {
    // the product's low half is kept: an error of the exponent is one of the result
    const double l = tile_log2(a), p = l * y, low = __builtin_fma(l, y, -p);
    v = p - p != 0 ? (p > 0 ? (double)TILE_INFINITY : 0) : tile_exp2(p);
    if (p - p == 0 && v - v == 0) v += v * low * 0.6931471805599453;
  }
  return x < 0 && odd ? -v : v;
}
TILE_DEVICE float tile_pow(float x, float y) { return (float)tile_pow((double)x, (double)y); }
// Remainders of numbers that are not negative. A step is exact: what a rounded quotient leaves is representable, and may be
// less than zero.
TILE_DEVICE float tile_left(float a, float b) { return __builtin_fmaf(-truncf(a / b), b, a); }
TILE_DEVICE double tile_left(double a, double b) { return __builtin_fma(-trunc(a / b), b, a); }
template <class T> TILE_DEVICE T tile_remainder(T a, T b) {
  bool below = false;
  while (a >= b) {
    a = tile_left(a, b);
    below = below != (a < 0);
    a = a < 0 ? -a : a;
  }
  return below && a != 0 ? b - a : a;
}
TILE_DEVICE double tile_truncmod(double x, double y) {
  double a = fabs(x), b = fabs(y), large = b;
  if (a - a != 0 || !(b > 0)) return TILE_NAN;
  // by multiples of b first, so that each quotient is finite
  while (a / large - a / large != 0) large *= 0x1p500;
  for (; large > b; large *= 0x1p-500) a = tile_remainder(a, large);
  return __builtin_copysign(tile_remainder(a, b), x);
}
TILE_DEVICE float tile_truncmod(float x, float y) {
  const float a = fabsf(x), b = fabsf(y);
  if (!(a / b < 0x1p24f)) return (float)tile_truncmod((double)x, (double)y);
  return __builtin_copysignf(tile_remainder(a, b), x);
}
template <class T> TILE_DEVICE T tile_rsqrt(T x) {
  return 1 / (sizeof(T) == 4 ? (T)__builtin_sqrtf((float)x) : (T)__builtin_sqrt(x));
}
"""

# Rounded by themselves: never a part of a fused multiply-add.
ROUNDED = r"""
#pragma clang fp contract(off)
TILE_DEVICE float tile_add_rounded(float a, float b) { return a + b; }
TILE_DEVICE float tile_sub_rounded(float a, float b) { return a - b; }
TILE_DEVICE float tile_mul_rounded(float a, float b) { return a * b; }
TILE_DEVICE float tile_div_rounded(float a, float b) { return a / b; }
TILE_DEVICE float tile_rcp_rounded(float x) { return 1.0f / x; }
TILE_DEVICE float tile_rsqrt_rounded(float x) { return (float)(1.0 / __builtin_sqrt((double)x)); }
#pragma clang fp contract(fast)
"""

FAST = r"""
TILE_DEVICE float tile_fast_exp(float x) { return exp2_fast(x * 1.44269504f); }
TILE_DEVICE float tile_fast_exp10(float x) { return exp2_fast(x * 3.32192809f); }
TILE_DEVICE float tile_fast_log(float x) { return log2_fast(x) * 0.693147181f; }
TILE_DEVICE float tile_fast_log10(float x) { return log2_fast(x) * 0.301029996f; }
TILE_DEVICE float tile_fast_sin(float x) { return sin_turns(x * 0.159154943f); }
TILE_DEVICE float tile_fast_cos(float x) { return cos_turns(x * 0.159154943f); }
TILE_DEVICE float tile_fast_tan(float x) { return tile_fast_sin(x) * rcp_fast(tile_fast_cos(x)); }
"""

MATHEMATICS = FLOATS + DOUBLES + POWERS + ROUNDED + FAST
