// Atomics of 32 bits, fences and barriers. MSL 6.9.1, 6.15.
#pragma once
#include "metal_types.h"
#include "words.h"

struct atomic_int { int value; };
struct atomic_uint { uint value; };
struct atomic_float { float value; };

namespace metal {
enum memory_order { memory_order_relaxed, memory_order_seq_cst };
enum thread_scope { thread_scope_thread, thread_scope_simdgroup, thread_scope_threadgroup, thread_scope_device };
enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2 };
inline mem_flags operator|(mem_flags a, mem_flags b) { return (mem_flags)((int)a | (int)b); }

#define MSL_HERE int line = __builtin_LINE()

void fence();   // simd.cpp
inline void atomic_thread_fence(mem_flags, memory_order, thread_scope = thread_scope_device, MSL_HERE) {
  machine::at(line);
  fence();
}
// 6.9.1, table 6.13: a barrier orders only the memory that it names; the machine keeps that of the device apart.
inline void order_device(mem_flags flags) {
  if ((int)flags & (int)mem_flags::mem_device) machine::proxy_fence();
}
inline void threadgroup_barrier(mem_flags flags, MSL_HERE) {
  machine::at(line);
  if (!((int)flags & (int)mem_flags::mem_threadgroup))
    machine::report("bad-operand", "threadgroup_barrier at {0} does not order threadgroup memory");
  order_device(flags);
  machine::block_barrier();
}
inline void simdgroup_barrier(mem_flags flags, MSL_HERE) {
  machine::at(line);
  order_device(flags);
  machine::subgroup_barrier(0xffffffffu);
}

// The weak form may fail though the word is as expected: here every other time.
template <class A, class T> inline bool atomic_compare_exchange_weak_explicit(A* at, T* expected, T desired, memory_order, memory_order) {
  const bool unlucky = machine::here->marks++ & 1;
  bool done = false;
  const T seen = machine::change_word(&at->value, [&](T old) {
    done = !unlucky && old == *expected;
    return done ? desired : old;
  });
  *expected = seen;
  return done;
}
#define MSL_ATOMIC(NAME, T, FRESH) \
  inline T NAME(atomic_##T* at, T value, memory_order) { return machine::change_word(&at->value, [=](T old) { return (T)(FRESH); }); }
#define MSL_ATOMICS(T)                                                \
  MSL_ATOMIC(atomic_exchange_explicit, T, ((void)old, value))         \
  MSL_ATOMIC(atomic_fetch_add_explicit, T, (uint)old + (uint)value)   \
  MSL_ATOMIC(atomic_fetch_max_explicit, T, old < value ? value : old) \
  MSL_ATOMIC(atomic_fetch_min_explicit, T, value < old ? value : old) \
  MSL_ATOMIC(atomic_fetch_or_explicit, T, old | value)                \
  MSL_ATOMIC(atomic_fetch_and_explicit, T, old & value)               \
  MSL_ATOMIC(atomic_fetch_xor_explicit, T, old ^ value)               \
  inline T atomic_load_explicit(atomic_##T* at, memory_order) { return (T)machine::atomic_read(&at->value); }
MSL_ATOMICS(int)
MSL_ATOMICS(uint)
MSL_ATOMIC(atomic_fetch_add_explicit, float, old + value)
#undef MSL_ATOMICS
#undef MSL_ATOMIC
}  // namespace metal
