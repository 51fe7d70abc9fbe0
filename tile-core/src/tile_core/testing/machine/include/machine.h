// What a kernel sees of the machine: who it is, and how it is called. Included by every kernel; keep it small.
#pragma once
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace machine {

struct Index3 {
  unsigned x, y, z;
};

// One thread of a cluster of blocks.
struct Thread {
  Index3 thread, block;     // place in the block, place of the block in the grid
  Index3 threads, blocks;   // sizes of both
  unsigned index;           // number in the cluster: rank * threads of a block + number in the block
  unsigned number, lane, subgroup;
  unsigned rank, ranks;     // block in its cluster, blocks in a cluster
  unsigned subgroup_size;
  int line;                 // source line of the last named helper
  unsigned marks;           // for the vendor; 0 when a block starts
};

extern Thread* here;        // the running one

void at(int line);          // not inline: the kernel's own stores are announced to the machine, this one need not be

// ---- memory of a block; an address is (rank << 24) | offset, so it also names the memory of another block of the cluster
uint32_t shared_address(const void* pointer);
void* shared_pointer(uint32_t address);
unsigned char* shared_dynamic();
void* shared_static(int id, size_t bytes, size_t alignment);   // the same place at every call with this id

// ---- checked accesses of the running thread; bytes also is the alignment
void read(const void* pointer, void* out, size_t bytes);
void write(void* pointer, const void* in, size_t bytes);
uint16_t atomic16(void* pointer, uint16_t (*change)(uint16_t old, uint16_t operand), uint16_t operand);
uint32_t atomic(void* pointer, uint32_t (*change)(uint32_t old, uint32_t operand), uint32_t operand);
uint32_t atomic_read(const void* pointer);
uint64_t atomic64(void* pointer, uint64_t (*change)(uint64_t old, uint64_t operand), uint64_t operand);
void release_at(const void* pointer);   // what this thread did before is seen by who acquires here later
void acquire_at(const void* pointer);

// ---- barriers
void block_barrier();
void named_sync(unsigned id, unsigned threads);
void named_arrive(unsigned id, unsigned threads);
void subgroup_barrier(uint64_t lanes);
void cluster_arrive(bool release);
void cluster_wait(bool acquire);
void poll();                            // a loop that waits for memory to change gives way here
void proxy_fence();                     // earlier writes become visible to the asynchronous proxy

// ---- transaction barriers: arrivals and bytes complete a phase
void barrier_init(uint32_t address, unsigned arrivals);
void barrier_invalidate(uint32_t address);
void barrier_arrive(uint32_t address, unsigned arrivals, int64_t bytes);
void barrier_expect(uint32_t address, int64_t bytes);
bool barrier_test(uint32_t address, unsigned parity);
void barrier_wait(uint32_t address, unsigned parity);
void barrier_fence_init();

// ---- reports; {0} and {1} in the text stand for source places
void report(const char* code, const char* format, ...) __attribute__((format(printf, 2, 3)));
[[noreturn]] void stop();               // the launch cannot go on

// ---- calling a kernel from arguments that came by file
struct Argument {
  enum Kind : uint64_t { integer, real, pointer, packed } kind;
  uint64_t bits;                        // the value, or the address of packed bytes
};

template <class T> struct Take {
  static T from(const Argument& a) {
    if constexpr (__is_class(T)) {
      T value;
      memcpy((void*)&value, (const void*)a.bits, sizeof value);
      return value;
    } else {
      double real;
      memcpy(&real, &a.bits, 8);
      return a.kind == Argument::real ? (T)real : (T)(int64_t)a.bits;
    }
  }
};
template <class T> struct Take<T*> {
  static T* from(const Argument& a) { return (T*)a.bits; }
};
template <class T> struct Plain { typedef T type; };
template <class T> struct Plain<const T> { typedef T type; };

template <int N, int... I> struct Indices : Indices<N - 1, N - 1, I...> {};
template <int... I> struct Indices<0, I...> {};
template <class... P, int... I> void call(void (*kernel)(P...), const Argument* a, Indices<0, I...>) {
  kernel(Take<typename Plain<P>::type>::from(a[I])...);
}
template <class... P> void call(void (*kernel)(P...), const Argument* a) { call(kernel, a, Indices<sizeof...(P)>()); }
template <class... P> constexpr int arity(void (*)(P...)) { return sizeof...(P); }

}  // namespace machine
