// The words of HIP C++ sources for the host, and what the host bodies of the helpers call. Included before every emulated kernel.
#pragma once
#include "machine.h"
#include "numbers.h"
#include "words.h"

#define __global__
#define __launch_bounds__(...)
#define TILE_DEVICE static inline
#define TILE_ARENA(bytes) unsigned char* const arena = machine::shared_dynamic()
#define TILE_BLOCK(axis) (int)machine::here->block.axis
#define TILE_THREAD (int)machine::here->thread.x

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
struct alignas(8) u32x2 { u32 x, y; };
struct alignas(16) u32x4 { u32 x, y, z, w; };

namespace hip {

// Elements of operands. FP8 and BF8 are the OCP kinds, FP8Z and BF8Z those without infinities and negative zero.
enum Type { F16, BF16, F32, XF32, S8, FP8, BF8, FP8Z, BF8Z };
extern const u32 zero_words[4];

// wave.cpp
u32 dpp(u32 value, int control);
u32 swizzle(u32 value, int pattern);
u32 gather(u32 value, u32 byte_of_lane);

// matrix.cpp: a lane's operands of one instruction; sums are float, of bytes int
void mfma(int generation, int side, int k, Type a, Type b, void* c, const void* pa, const void* pb);
void wmma(int generation, int side, int k, Type a, Type b, void* c, const void* pa, const void* pb);

inline void widened(float* to, const void* halves, int count) {
  for (int i = 0; i < count; ++i) to[i] = numbers::half_to_float(((const unsigned short*)halves)[i]);
}
inline void narrowed(void* halves, const float* from, int count) {
  for (int i = 0; i < count; ++i) ((unsigned short*)halves)[i] = (unsigned short)numbers::float_to_half(from[i]);
}

// copies.cpp
void lds_copy(u32 to, const void* from, unsigned size);
void copies_wait(unsigned left);

template <class T> inline T load(const void* p) { T v; machine::read(p, &v, sizeof v); return v; }
template <class T> inline void store(void* p, T v) { machine::write(p, &v, sizeof v); }
inline int dot4(u32 a, u32 b, int c, bool is_signed) {
  for (int i = 0; i < 4; ++i) {
    const u32 x = a >> (8 * i) & 255, y = b >> (8 * i) & 255;
    c = (int)((u32)c + (is_signed ? (u32)((signed char)x * (signed char)y) : x * y));
  }
  return c;
}
inline void add_pair_f16(void* to, u32 v) {
  machine::change_word((u32*)to, [&](u32 a) { return numbers::half2(numbers::add_, a, v); });
}
inline void add_pair_bf16(void* to, u32 v) {
  machine::change_word((u32*)to, [&](u32 a) { return numbers::brain2(numbers::add_, a, v); });
}

}  // namespace hip
