// A matrix operand in shared memory as its descriptor says. PTX ISA, "Matrix Descriptor Format", "Shared Memory Matrix Layout".
#pragma once
#include <vector>

#include "elements.h"
#include "operations.h"
#include "swizzle.h"

namespace cuda {

// `mn` counts rows of A or columns of B; `span` are the bytes of the swizzle, which wgmma and tcgen05 encode differently.
struct Matrix {
  uint32_t start, leading, stride, span, rank;
  int bytes;                          // of an element
  Type type;
  bool transposed;                    // stored along M or N

  Matrix(uint64_t descriptor, uint32_t swizzle, Type of, bool along_mn, uint32_t block) {
    start = (uint32_t)(descriptor & 0x3fff) << 4;
    leading = (uint32_t)(descriptor >> 16 & 0x3fff) << 4;
    stride = (uint32_t)(descriptor >> 32 & 0x3fff) << 4;
    span = swizzle;
    rank = block;
    type = of;
    bytes = bits(type) / 8;
    transposed = along_mn;
  }

  // Address of the 16 bytes that hold (mn, k); they run along k, or along mn when transposed.
  // Canonical layouts in units of 16 bytes (T elements), PTX ISA "Strides": K-major swizzled ((8,m),(T,2)) : ((span,SBO),(1,T)),
  // K-major plain ((8,m),(T,2)) : ((16 B,SBO),(1,LBO)), MN-major swizzled ((T,span/16,m),(8,k)) : ((1,T,LBO),(span,SBO)),
  // MN-major plain ((T,m),(8,k)) : ((1,SBO),(16 B,LBO)).
  uint32_t chunk(uint32_t mn, uint32_t k) const {
    const uint32_t per = 16 / (uint32_t)bytes;
    uint32_t at;
    if (!transposed) {
      const uint32_t pitch = span ? span : 16;
      at = mn % 8 * pitch + mn / 8 * stride + k / per * (span ? 16 : leading);
    } else if (span) {
      const uint32_t wide = span / (uint32_t)bytes;
      at = mn % wide / per * 16 + mn / wide * leading + k % 8 * span + k / 8 * stride;
    } else {
      at = mn / per * stride + k % 8 * 16 + k / 8 * leading;
    }
    return rank << 24 | swizzled(start + at, span);
  }

  // size x depth elements, k fastest
  std::vector<double> elements(const machine::Actor& actor, int size, int depth) const {
    std::vector<double> out((size_t)(size * depth));
    unsigned char raw[16];
    const int per = 16 / bytes;
    for (int mn = 0; mn < size; mn += transposed ? per : 1)
      for (int k = 0; k < depth; k += transposed ? 1 : per) {
        machine::load(actor, machine::shared_pointer(chunk((uint32_t)mn, (uint32_t)k)), raw, 16, 16);
        for (int i = 0; i < per; ++i) {
          uint32_t v = 0;
          memcpy(&v, raw + i * bytes, (size_t)bytes);
          const int row = transposed ? mn + i : mn, column = transposed ? k : k + i;
          out[(size_t)(row * depth + column)] = number_of(type, v);
        }
      }
    return out;
  }
};

}  // namespace cuda
