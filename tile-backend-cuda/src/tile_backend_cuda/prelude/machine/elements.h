// Elements in registers of 32 bits (64 for double): which bits, and as what number.
#pragma once
#include "cuda_host.h"

namespace cuda {

inline int bits(Type t) {
  switch (t) {
    case F16: case BF16: return 16;
    case E4M3_: case E5M2_: case S8: case U8: return 8;
    case S4: case U4: return 4;
    case F64: return 64;
    default: return 32;
  }
}

inline int elements_per_register(Type t) { return bits(t) == 64 ? 1 : 32 / bits(t); }

inline double number_of(Type t, uint32_t v) {
  switch (t) {
    case F16: return half_to_float(v);
    case BF16: return brain_to_float(v & 0xffff);
    case TF32: return float_of(v & ~0x1fffu);   // the low 13 bits are not looked at
    case E4M3_: return e4m3_to_float(v);
    case E5M2_: return e5m2_to_float(v);
    case S8: return (int8_t)v;
    case U8: return (uint8_t)v;
    case S4: return (int)((v & 15) ^ 8) - 8;
    case U4: return v & 15;
    case S32: return (int32_t)v;
    default: return float_of(v);
  }
}

inline double element(Type t, const void* registers, int r, int e) {
  if (t == F64) return ((const double*)registers)[r];
  return number_of(t, ((const uint32_t*)registers)[r] >> (bits(t) == 32 ? 0 : e * bits(t)));
}

inline void put(Type t, void* registers, int r, int e, double x) {
  uint32_t* word = (uint32_t*)registers + r;
  switch (t) {
    case F64: ((double*)registers)[r] = x; break;
    case F32: *word = bits_of((float)x); break;
    case S32: *word = (uint32_t)(int64_t)x; break;   // wraps, as without .satfinite
    default: {                                        // F16
      const uint32_t v = encode(x, HALF);
      *word = e ? (*word & 0xffff) | v << 16 : (*word & 0xffff0000u) | v;
    }
  }
}

}  // namespace cuda
