// Types that MSL has built in: integers, half, bfloat, short vectors, and bit casts. MSL 2.1, 2.2, 2.21.
#pragma once
#include "machine.h"
#include "numbers.h"

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

struct half {
  uint16_t bits;
  half() = default;
  explicit half(float x) : bits(numbers::float_to_half(x)) {}
  explicit half(int x) : half((float)x) {}
  explicit operator float() const { return numbers::half_to_float(bits); }
};

struct bfloat {
  uint16_t bits;
  bfloat() = default;
  explicit bfloat(float x) : bits(numbers::float_to_brain(x)) {}
  explicit bfloat(int x) : bfloat((float)x) {}
  explicit operator float() const { return numbers::brain_to_float(bits); }
};

// A vector in memory is read and written at once, and lies at a multiple of its size.
#define MSL_VECTOR2(T, N)                                 \
  struct alignas(2 * sizeof(T)) N {                       \
    T x, y;                                               \
    N() = default;                                        \
    explicit N(T v) : x(v), y(v) {}                       \
    T& operator[](int i) { return i ? y : x; }            \
  };
MSL_VECTOR2(uchar, uchar2)
MSL_VECTOR2(ushort, ushort2)
MSL_VECTOR2(uint, uint2)
MSL_VECTOR2(float, float2)
MSL_VECTOR2(half, half2)
MSL_VECTOR2(bfloat, bfloat2)
#undef MSL_VECTOR2

struct alignas(16) uint3 {
  uint x, y, z;
};
struct alignas(16) uint4 {
  uint x, y, z, w;
  uint4() = default;
  explicit uint4(uint v) : x(v), y(v), z(v), w(v) {}
};

template <class To, class From> inline To as_type(From from) {
  static_assert(sizeof(To) == sizeof(From), "as_type keeps the width");
  To to;
  memcpy((void*)&to, (const void*)&from, sizeof to);
  return to;
}

namespace metal {
template <class T, int N> struct vec_of;
template <> struct vec_of<float, 2> { typedef float2 type; };
template <> struct vec_of<half, 2> { typedef half2 type; };
template <> struct vec_of<bfloat, 2> { typedef bfloat2 type; };
template <class T, int N> using vec = typename vec_of<T, N>::type;
}  // namespace metal
