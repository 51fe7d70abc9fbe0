// Functions that CUDA C++ knows without a header, for sources that use them beside the named helpers.
#pragma once
#include <stdio.h>

#include "machine.h"
#include "numbers.h"
#include "words.h"

namespace cuda {
using namespace numbers;
}

inline int __float_as_int(float x) { return (int)cuda::bits_of(x); }
inline float __int_as_float(int x) { return cuda::float_of((uint32_t)x); }
inline unsigned __float_as_uint(float x) { return cuda::bits_of(x); }
inline float __uint_as_float(unsigned x) { return cuda::float_of(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(long long x) { return __builtin_popcountll((unsigned long long)x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __frsqrt_rn(float x) { return (float)(1.0 / sqrt((double)x)); }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return exp10f(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float rsqrtf(float x) { return (float)(1.0 / sqrt((double)x)); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
template <class T> inline T min(T a, T b) { return b < a ? b : a; }
template <class T> inline T max(T a, T b) { return a < b ? b : a; }

// Atomics on words of 16, 32 and 64 bits, of shared or global memory.
template <class T> inline T atomicAdd(T* p, T v) { return machine::change_word(p, [&](T a) { return (T)(a + v); }); }
template <class T> inline T atomicMin(T* p, T v) { return machine::change_word(p, [&](T a) { return v < a ? v : a; }); }
template <class T> inline T atomicMax(T* p, T v) { return machine::change_word(p, [&](T a) { return a < v ? v : a; }); }
template <class T> inline T atomicAnd(T* p, T v) { return machine::change_word(p, [&](T a) { return (T)(a & v); }); }
template <class T> inline T atomicOr(T* p, T v) { return machine::change_word(p, [&](T a) { return (T)(a | v); }); }
template <class T> inline T atomicXor(T* p, T v) { return machine::change_word(p, [&](T a) { return (T)(a ^ v); }); }
template <class T> inline T atomicExch(T* p, T v) { return machine::change_word(p, [&](T) { return v; }); }
template <class T> inline T atomicCAS(T* p, T expected, T v) { return machine::change_word(p, [&](T a) { return a == expected ? v : a; }); }
