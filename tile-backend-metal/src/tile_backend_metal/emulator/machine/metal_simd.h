// What the 32 threads of a simdgroup do together: exchanges of values, and matrices of 8x8 elements. MSL 6.7, 6.9.2.
#pragma once
#include "metal_atomic.h"

namespace metal {

enum class Shuffle { to_xor, up, at };
uint32_t shuffle(Shuffle kind, uint32_t value, int number);   // simd.cpp

#define MSL_SHUFFLE(NAME, KIND)                                             \
  template <class T> inline T NAME(T value, ushort number, MSL_HERE) {      \
    static_assert(sizeof(T) == 4, "other widths are not emulated");         \
    machine::at(line);                                                      \
    return as_type<T>(shuffle(Shuffle::KIND, as_type<uint32_t>(value), number)); \
  }
MSL_SHUFFLE(simd_shuffle_xor, to_xor)
MSL_SHUFFLE(simd_shuffle_up, up)
MSL_SHUFFLE(simd_shuffle, at)
#undef MSL_SHUFFLE

enum class Element { f32, f16, bf16 };
template <class T> struct element_of;
template <> struct element_of<float> { static constexpr Element value = Element::f32; };
template <> struct element_of<half> { static constexpr Element value = Element::f16; };
template <> struct element_of<bfloat> { static constexpr Element value = Element::bf16; };

// the two elements of this lane
struct Part {
  Element type;
  const void* elements;
};
// matrix.cpp
void multiply(void* d, Element td, Part a, Part b, Part c);
void load(void* to, Element type, const void* from, ulong columns, ulong x, ulong y, bool transposed);
void store(const void* from, Element type, void* to, ulong columns, ulong x, ulong y, bool transposed);

template <class T, int R, int C> class simdgroup_matrix {
  static_assert(R == 8 && C == 8, "MSL 2.4: simdgroup matrices are 8x8");
  vec<T, 2> own;

 public:
  simdgroup_matrix() = default;
  vec<T, 2>& thread_elements() { return own; }
  Part part() const { return {element_of<T>::value, &own}; }
};

struct ulong2 {
  ulong x, y;
};
template <class D, class A, class B, class C>
inline void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8>& d, const simdgroup_matrix<A, 8, 8>& a,
                                          const simdgroup_matrix<B, 8, 8>& b, const simdgroup_matrix<C, 8, 8>& c, MSL_HERE) {
  machine::at(line);
  multiply(&d.thread_elements(), element_of<D>::value, a.part(), b.part(), c.part());
}
template <class T>
inline void simdgroup_load(simdgroup_matrix<T, 8, 8>& d, const T* from, ulong columns = 8, ulong2 origin = {0, 0},
                           bool transposed = false, MSL_HERE) {
  machine::at(line);
  load(&d.thread_elements(), element_of<T>::value, from, columns, origin.x, origin.y, transposed);
}
template <class T>
inline void simdgroup_store(const simdgroup_matrix<T, 8, 8>& a, T* to, ulong columns = 8, ulong2 origin = {0, 0},
                            bool transposed = false, MSL_HERE) {
  machine::at(line);
  store(a.part().elements, element_of<T>::value, to, columns, origin.x, origin.y, transposed);
}

}  // namespace metal
