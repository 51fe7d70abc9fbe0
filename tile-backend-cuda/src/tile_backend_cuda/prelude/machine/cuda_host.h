// The words of CUDA C++ for the host, and what the host bodies of the helpers call. Included before every emulated kernel.
#pragma once
#include "machine.h"
#include "cuda_words.h"
#include "numbers.h"

#define __global__
#define __device__
#define __constant__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __restrict__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define threadIdx (machine::here->thread)
#define blockIdx (machine::here->block)
#define blockDim (machine::here->threads)
#define gridDim (machine::here->blocks)
#define __syncthreads() (machine::at(__LINE__), machine::block_barrier())
#define __syncwarp(...) (machine::at(__LINE__), machine::subgroup_barrier(0xffffffffu))
#define __trap() (machine::report("crash", "the kernel executes a trap at {0}"), machine::stop())

namespace cuda {

enum Type { F16, BF16, TF32, E4M3_, E5M2_, S8, U8, S4, U4, F32, S32, F64 };
enum Swizzle { NONE, B32, B64, B128 };

// the opaque 128 bytes of a tensor map, as `tensor_map.py` fills them
struct Map {
  uint64_t base, sizes[5], strides[4];   // elements; bytes, of dimensions 1 to 4
  uint32_t box[5];
  uint8_t steps[5], rank, bytes, swizzle, type, nan;
};

struct Lanes {                        // operands of a warp-level instruction on 32-bit registers
  uint32_t value, other;
  int number;
};

// ---- warp.cpp
uint32_t shuffle(int kind, uint32_t value, int number, int width);   // kind: 0 xor, 1 up, 2 down, 3 index
uint32_t vote(bool predicate);
uint32_t reduce(int kind, uint32_t value);   // 0 add, 1 min u, 2 max u, 3 min s, 4 max s, 5 and, 6 or, 7 xor
uint32_t match_any(uint32_t value);
uint32_t block_count(bool predicate);
uint32_t named_count(unsigned id, unsigned threads, bool predicate);
bool elect();

// ---- matrix.cpp
void mma(int m, int n, int k, Type td, Type ta, Type tb, void* d, const void* a, const void* b, const void* c);
void ldmatrix(int count, bool transposed, uint32_t* d, uint32_t address);
void stmatrix(int count, bool transposed, uint32_t address, const uint32_t* s);
uint32_t movmatrix(uint32_t value);

// ---- warpgroup.cpp; a is null when A comes from shared memory
void wgmma(int n, int k, Type td, Type ta, Type tb, bool a_transposed, bool b_transposed, void* d, const uint32_t* a,
           uint64_t descriptor_a, uint64_t descriptor_b, int scale_d);
void wgmma_fence();
void wgmma_commit();
void wgmma_wait(unsigned left);
uint64_t descriptor(uint32_t address, uint32_t leading, uint32_t stride, uint32_t swizzle);

// ---- tensor_memory.cpp; kinds 0 f16, 1 tf32, 2 f8f6f4, 3 i8
void tmem_allocate(uint32_t to, uint32_t columns);
void tmem_free(uint32_t tensor, uint32_t columns);
void tmem_multiply(int kind, uint32_t tensor, uint64_t a, uint64_t b, uint32_t instruction, uint32_t adds);
void tmem_commit(uint32_t barrier);
void tmem_load(unsigned count, uint32_t* registers, uint32_t tensor);
void tmem_store(unsigned count, uint32_t tensor, const uint32_t* registers);
void tmem_wait(bool loads);
uint64_t tmem_descriptor(uint32_t address, uint32_t leading, uint32_t stride, uint32_t swizzle);

// ---- copies.cpp
void copy_async(uint32_t to, const void* from, unsigned bytes, unsigned taken);
void copy_commit();
void copy_wait(unsigned left);
void copy_wait_all();
void copy_arrive(uint32_t barrier);
void store_async(uint32_t to, const void* value, unsigned bytes, uint32_t barrier);

// ---- tensor.cpp; mask 0: this block alone
void tensor_load(int rank, uint32_t to, const void* map, uint32_t barrier, const int* at, uint16_t mask);
void tensor_store(int rank, const void* map, uint32_t from, const int* at, bool adds);
void bulk_load(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier, uint16_t mask);
void bulk_store(void* to, uint32_t from, uint32_t bytes, int adds);   // 0 store, 1 add f32, 2 add f16, 3 add bf16
void bulk_to_block(uint32_t to, uint32_t from, uint32_t bytes, uint32_t barrier);
void bulk_commit();
void bulk_wait(unsigned left);

// ---- small things
template <class T> inline T load(const void* p) { T v; machine::read(p, &v, sizeof v); return v; }
template <class T> inline void store(void* p, T v) { machine::write(p, &v, sizeof v); }
template <class T> inline T load_shared(uint32_t a) { return load<T>(machine::shared_pointer(a)); }
template <class T> inline void store_shared(uint32_t a, T v) { store(machine::shared_pointer(a), v); }
inline uint32_t add_u32(uint32_t a, uint32_t b) { return a + b; }
inline uint32_t add_f32(uint32_t a, uint32_t b) { return bits_of(float_of(a) + float_of(b)); }
inline uint32_t add_f16x2(uint32_t a, uint32_t b) { return half2(add_, a, b); }
inline uint32_t add_bf16x2(uint32_t a, uint32_t b) { return brain2(add_, a, b); }
inline uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }
inline uint32_t max_u32(uint32_t a, uint32_t b) { return a > b ? a : b; }
inline uint32_t min_s32(uint32_t a, uint32_t b) { return (int32_t)a < (int32_t)b ? a : b; }
inline uint32_t max_s32(uint32_t a, uint32_t b) { return (int32_t)a > (int32_t)b ? a : b; }
inline uint32_t and_b32(uint32_t a, uint32_t b) { return a & b; }
inline uint32_t or_b32(uint32_t a, uint32_t b) { return a | b; }
inline uint32_t xor_b32(uint32_t a, uint32_t b) { return a ^ b; }
inline uint32_t second(uint32_t, uint32_t b) { return b; }
inline uint32_t compare_and_swap(void* p, uint32_t expected, uint32_t value) {
  const uint32_t old = machine::atomic_read(p);   // threads give way only where they wait, so nothing comes between
  if (old == expected) machine::atomic(p, second, value);
  return old;
}
inline uint64_t add_f64(uint64_t a, uint64_t b) {
  double x, y;
  memcpy(&x, &a, 8);
  memcpy(&y, &b, 8);
  x += y;
  memcpy(&a, &x, 8);
  return a;
}
inline int32_t dot4(uint32_t a, uint32_t b, int32_t c, bool is_signed) {
  for (int i = 0; i < 4; ++i) {
    const uint32_t x = a >> (8 * i) & 255, y = b >> (8 * i) & 255;
    c = (int32_t)((uint32_t)c + (is_signed ? (uint32_t)((int8_t)x * (int8_t)y) : x * y));
  }
  return c;
}
inline uint32_t permute(uint32_t a, uint32_t b, uint32_t selector) {   // prmt.b32, default mode
  const uint64_t bytes = (uint64_t)b << 32 | a;
  uint32_t out = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32_t s = selector >> (4 * i) & 15, v = (uint32_t)(bytes >> (8 * (s & 7))) & 255;
    out |= (s & 8 ? (v & 128 ? 255u : 0u) : v) << (8 * i);
  }
  return out;
}
inline uint32_t logic3(uint32_t a, uint32_t b, uint32_t c, int table) {
  uint32_t out = 0;
  for (int i = 0; i < 8; ++i)
    if (table >> i & 1) out |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return out;
}
inline uint32_t address_in_block(uint32_t address, uint32_t rank) {
  if (rank >= machine::here->ranks) {
    machine::report("bad-operand", "cluster_map at {0} names block %u of a cluster of %u", rank, machine::here->ranks);
    machine::stop();
  }
  return (address & 0xffffff) | rank << 24;
}
inline void check_vector(const void* p, uint32_t bytes) {
  if ((uint64_t)p % bytes) machine::report("misaligned", "a vector atomic at {0} is not aligned to %u bytes", bytes);
}
[[noreturn]] inline void not_emulated(const char* name) {
  machine::report("unsupported", "%s at {0} is not emulated: it can only be compiled", name);
  machine::stop();
}

}  // namespace cuda
