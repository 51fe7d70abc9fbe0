"""The first part of every CUDA source: scalar types and functions, without any include."""

from __future__ import annotations

from tile_core.lowering.cplusplus import ATOMICS, SCALARS

HEAD = r"""
#define TILE_DEVICE static __device__ __forceinline__
#define TILE_NAN __int_as_float(0x7fffffff)
#define TILE_INFINITY __int_as_float(0x7f800000)

TILE_DEVICE unsigned int tile_bits(float x) { return __float_as_uint(x); }
TILE_DEVICE float tile_float(unsigned int x) { return __uint_as_float(x); }
"""

# Conversions of float16 and bfloat16 are single instructions (PTX ISA, cvt); before sm_80 bfloat16 is done by bits.
WORDS = r"""
struct alignas(2) half_t { unsigned short bits; };
struct alignas(2) bfloat_t { unsigned short bits; };

TILE_DEVICE float float16_to_float(half_t x) {
  float out;
  asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(x.bits));
  return out;
}
TILE_DEVICE half_t float_to_float16(float x) {
  half_t out;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out.bits) : "f"(x));
  return out;
}
TILE_DEVICE float bfloat16_to_float(bfloat_t x) { return __uint_as_float((unsigned int)x.bits << 16); }
TILE_DEVICE bfloat_t float_to_bfloat16(float x) {
  bfloat_t out;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out.bits) : "f"(x));
#else
  out.bits = tile_to_bfloat16(x);
#endif
  return out;
}

template <class T> TILE_DEVICE T tile_popcount(T a) {
  constexpr unsigned int mask = sizeof(T) >= 4 ? ~0u : (1u << 8 * (sizeof(T) % 4)) - 1;
  return sizeof(T) == 8 ? __popcll((long long)a) : __popc((unsigned int)a & mask);
}
template <class T> TILE_DEVICE T tile_clz(T a) {
  if (sizeof(T) == 8) return __clzll((long long)a);
  constexpr int bits = 8 * sizeof(T);
  return __clz((int)((unsigned int)a << (32 - bits)) | (bits < 32 ? 1 << (31 - bits) : 0));
}
TILE_DEVICE float tile_fast_exp2(float x) {
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}
TILE_DEVICE float tile_fast_rcp(float x) {
  float out;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}

template <class W> TILE_DEVICE W tile_compare_and_swap(W* at, W expected, W value) { return atomicCAS(at, expected, value); }
"""

# Without a use of the result the compiler makes reductions of these (SASS: RED).
OWN_ATOMICS = r"""
TILE_DEVICE float tile_atomic_add(float* at, float value) { return atomicAdd(at, value); }
TILE_DEVICE int tile_atomic_add(int* at, int value) { return atomicAdd(at, value); }
TILE_DEVICE unsigned int tile_atomic_add(unsigned int* at, unsigned int value) { return atomicAdd(at, value); }
TILE_DEVICE double tile_atomic_add(double* at, double value) { return atomicAdd(at, value); }
TILE_DEVICE unsigned long long tile_atomic_add(unsigned long long* at, unsigned long long value) { return atomicAdd(at, value); }
TILE_DEVICE long long tile_atomic_add(long long* at, long long value) {
  return (long long)atomicAdd((unsigned long long*)at, (unsigned long long)value);
}
TILE_DEVICE int tile_atomic_max(int* at, int value) { return atomicMax(at, value); }
TILE_DEVICE unsigned int tile_atomic_max(unsigned int* at, unsigned int value) { return atomicMax(at, value); }
TILE_DEVICE int tile_atomic_min(int* at, int value) { return atomicMin(at, value); }
TILE_DEVICE unsigned int tile_atomic_min(unsigned int* at, unsigned int value) { return atomicMin(at, value); }
TILE_DEVICE int tile_atomic_or(int* at, int value) { return atomicOr(at, value); }
TILE_DEVICE unsigned int tile_atomic_or(unsigned int* at, unsigned int value) { return atomicOr(at, value); }
TILE_DEVICE int tile_atomic_and(int* at, int value) { return atomicAnd(at, value); }
TILE_DEVICE unsigned int tile_atomic_and(unsigned int* at, unsigned int value) { return atomicAnd(at, value); }
TILE_DEVICE int tile_atomic_xor(int* at, int value) { return atomicXor(at, value); }
TILE_DEVICE unsigned int tile_atomic_xor(unsigned int* at, unsigned int value) { return atomicXor(at, value); }
"""

BASE = HEAD + SCALARS + WORDS + ATOMICS + OWN_ATOMICS
