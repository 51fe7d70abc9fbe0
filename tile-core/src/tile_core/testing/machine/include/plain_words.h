// The words of plain C++ kernels for the host: what `cplusplus_dialect.PLAIN` calls, and the ground under `cplusplus`. For
// vendors whose language is not C++ with other words, and for the time before they have a device.
#pragma once
#include "machine.h"
#include "numbers.h"
#include "words.h"

#define TILE_KERNEL extern "C"
#define TILE_DEVICE static inline
#define TILE_ARENA(bytes) unsigned char* const arena = machine::shared_dynamic()
#define TILE_BLOCK(axis) (int)machine::here->block.axis
#define TILE_THREAD (int)machine::here->thread.x
#define TILE_NAN __builtin_nanf("")
#define TILE_INFINITY __builtin_inff()
#define tile_sync() (machine::at(__LINE__), machine::block_barrier())
#define tile_trap() (machine::report("crash", "the kernel executes a trap at {0}"), machine::stop())

TILE_DEVICE unsigned int tile_bits(float x) { return numbers::bits_of(x); }
TILE_DEVICE float tile_float(unsigned int x) { return numbers::float_of(x); }
TILE_DEVICE unsigned int tile_shared_address(const void* at) { return machine::shared_address(at); }
// Blocks run one after the other: what an earlier one did before its fence is seen here from now on.
TILE_DEVICE void tile_fence() { machine::acquire_at(nullptr); }

struct alignas(2) half_t { unsigned short bits; };
struct alignas(2) bfloat_t { unsigned short bits; };
TILE_DEVICE float float16_to_float(half_t x) { return numbers::half_to_float(x.bits); }
TILE_DEVICE half_t float_to_float16(float x) { return {numbers::float_to_half(x)}; }
TILE_DEVICE float bfloat16_to_float(bfloat_t x) { return numbers::brain_to_float(x.bits); }
TILE_DEVICE bfloat_t float_to_bfloat16(float x) { return {numbers::float_to_brain(x)}; }

template <class T> TILE_DEVICE T tile_popcount(T a) {
  constexpr unsigned long long mask = sizeof(T) == 8 ? ~0ull : (1ull << 8 * (sizeof(T) % 8)) - 1;
  return (T)__builtin_popcountll((unsigned long long)a & mask);
}
template <class T> TILE_DEVICE T tile_clz(T a) {
  constexpr int bits = 8 * sizeof(T);
  constexpr unsigned long long mask = bits == 64 ? ~0ull : (1ull << bits % 64) - 1;
  const unsigned long long u = (unsigned long long)a & mask;
  return (T)(u ? __builtin_clzll(u) - (64 - bits) : bits);
}
template <class W> TILE_DEVICE W tile_compare_and_swap(W* at, W expected, W value) {
  return machine::change_word(at, [&](W old) { return old == expected ? value : old; });
}

#define rsqrtf(x) (1.0f / sqrtf(x))
#define rsqrt(x) (1.0 / sqrt(x))
TILE_DEVICE float tile_ieee_add(float a, float b) { return a + b; }
TILE_DEVICE float tile_ieee_sub(float a, float b) { return a - b; }
TILE_DEVICE float tile_ieee_mul(float a, float b) { return a * b; }
TILE_DEVICE float tile_ieee_div(float a, float b) { return a / b; }
TILE_DEVICE float tile_ieee_sqrt(float x) { return sqrtf(x); }
TILE_DEVICE float tile_ieee_rcp(float x) { return 1.0f / x; }
TILE_DEVICE float tile_ieee_rsqrt(float x) { return (float)(1.0 / sqrt((double)x)); }
