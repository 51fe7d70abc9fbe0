// Plain loads and stores of a kernel: the compiler's thread sanitizer calls these before each of them (no runtime of it is linked).
// Volatile ones count as atomic: threads may meet in them.
#include "state.h"

namespace machine {
extern u64 kernel_base;
}

#define HOOKED extern "C" __attribute__((visibility("default"), used))
#define SITE ((uint32_t)((uint64_t)__builtin_return_address(0) - machine::kernel_base) | 0x80000000u)
#define ACCESS(bytes)                                                                                          \
  HOOKED void __tsan_read##bytes(void* p) { machine::check_access(p, bytes, false, SITE, true); }              \
  HOOKED void __tsan_write##bytes(void* p) { machine::check_access(p, bytes, true, SITE, true); }              \
  HOOKED void __tsan_unaligned_read##bytes(void* p) { machine::check_access(p, bytes, false, SITE, false); }   \
  HOOKED void __tsan_unaligned_write##bytes(void* p) { machine::check_access(p, bytes, true, SITE, false); }   \
  HOOKED void __tsan_volatile_read##bytes(void* p) { machine::check_access(p, bytes, false, SITE, true, true); }     \
  HOOKED void __tsan_volatile_write##bytes(void* p) { machine::check_access(p, bytes, true, SITE, true, true); }

ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

HOOKED void __tsan_read_range(void* p, unsigned long bytes) { machine::check_access(p, bytes, false, SITE, false); }
HOOKED void __tsan_write_range(void* p, unsigned long bytes) { machine::check_access(p, bytes, true, SITE, false); }
HOOKED void __tsan_init() {}
HOOKED void __tsan_func_entry(void*) {}
HOOKED void __tsan_func_exit() {}
HOOKED void __tsan_vptr_update(void**, void*) {}
HOOKED void __tsan_vptr_read(void**) {}
