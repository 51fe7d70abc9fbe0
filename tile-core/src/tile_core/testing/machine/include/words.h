// Atomic changes of words of 16, 32 and 64 bits in shared or global memory by any function. Threads give way only where
// they wait, so nothing comes between the reading and the writing.
#pragma once
#include "machine.h"

namespace machine {
// The value before; `f` makes the new one of it.
template <class T, class F> inline T change_word(T* p, F f) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8, "atomics work on words of 16, 32 and 64 bits");
  T old;
  if constexpr (sizeof(T) == 2) {
    const uint16_t seen = atomic16(p, [](uint16_t a, uint16_t) { return a; }, 0);
    memcpy(&old, &seen, 2);
    const T fresh = f(old);
    uint16_t bits;
    memcpy(&bits, &fresh, 2);
    atomic16(p, [](uint16_t, uint16_t b) { return b; }, bits);
  } else if constexpr (sizeof(T) == 4) {
    const uint32_t seen = atomic_read(p);
    memcpy(&old, &seen, 4);
    const T fresh = f(old);
    uint32_t bits;
    memcpy(&bits, &fresh, 4);
    if (bits != seen) atomic(p, [](uint32_t, uint32_t b) { return b; }, bits);
  } else {
    const uint64_t seen = atomic64(p, [](uint64_t a, uint64_t) { return a; }, 0);
    memcpy(&old, &seen, 8);
    const T fresh = f(old);
    uint64_t bits;
    memcpy(&bits, &fresh, 8);
    atomic64(p, [](uint64_t, uint64_t b) { return b; }, bits);
  }
  return old;
}
}  // namespace machine
