// Swizzles of shared memory. PTX ISA, "Swizzling modes": 16-byte chunks of an address are exchanged by XOR with its row bits.
#pragma once
#include <stdint.h>

namespace cuda {

// span 32, 64 or 128 bytes: bits 4 and up are XORed with bits 7 and up
inline uint32_t swizzled(uint32_t address, uint32_t span) {
  return span < 32 ? address : address ^ ((address >> 7 & (span / 16 - 1)) << 4);
}

inline uint32_t span_of(int swizzle) { return swizzle ? 16u << swizzle : 0; }   // NONE, B32, B64, B128

}  // namespace cuda
