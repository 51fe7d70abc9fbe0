// Functions of scalars. MSL 6.3, 6.5.
#pragma once
#include "metal_types.h"

namespace metal {
inline float floor(float x) { return ::floorf(x); }
inline float ceil(float x) { return ::ceilf(x); }
inline float rint(float x) { return ::rintf(x); }
inline float trunc(float x) { return ::truncf(x); }
inline float fabs(float x) { return ::fabsf(x); }
inline float fmin(float a, float b) { return ::fminf(a, b); }
inline float fmax(float a, float b) { return ::fmaxf(a, b); }
inline float fmod(float a, float b) { return ::fmodf(a, b); }
inline float fma(float a, float b, float c) { return ::fmaf(a, b, c); }

// of as many bits as the type has
template <class T> inline uint64_t bits_of(T x) { return sizeof(T) == 8 ? (uint64_t)x : (uint64_t)x & ((1ull << (8 * sizeof(T) % 64)) - 1); }
template <class T> inline T popcount(T x) { return (T)__builtin_popcountll(bits_of(x)); }
template <class T> inline T clz(T x) {
  const uint64_t bits = bits_of(x);
  return (T)(bits ? __builtin_clzll(bits) - (64 - 8 * (int)sizeof(T)) : 8 * (int)sizeof(T));
}

#define MSL_FUNCTIONS                                            \
  inline float exp(float x) { return ::expf(x); }                \
  inline float exp2(float x) { return ::exp2f(x); }              \
  inline float exp10(float x) { return (float)::pow(10.0, x); }  \
  inline float log(float x) { return ::logf(x); }                \
  inline float log2(float x) { return ::log2f(x); }              \
  inline float log10(float x) { return ::log10f(x); }            \
  inline float sin(float x) { return ::sinf(x); }                \
  inline float cos(float x) { return ::cosf(x); }                \
  inline float tan(float x) { return ::tanf(x); }
namespace precise {
MSL_FUNCTIONS
inline float sqrt(float x) { return ::sqrtf(x); }
inline float rsqrt(float x) { return (float)(1.0 / ::sqrt((double)x)); }
inline float tanh(float x) { return ::tanhf(x); }
inline float pow(float a, float b) { return ::powf(a, b); }
}  // namespace precise
namespace fast {
MSL_FUNCTIONS
}  // namespace fast
#undef MSL_FUNCTIONS
}  // namespace metal
