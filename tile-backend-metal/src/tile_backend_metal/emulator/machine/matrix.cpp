// Matrices of 8x8 elements that a simdgroup holds, two elements in each lane. MSL 2.4, 6.7.
#include "metal_simd.h"
#include "operations.h"

namespace metal {

namespace {
const int SIDE = 8, LANES = 32;

// Which lane holds the elements of each row, in pairs of neighbours. MSL does not say; this is what public kernels that use
// `thread_elements` have found, drawn as a picture.
const int HOLDER[SIDE][SIDE / 2] = {
    {0, 1, 8, 9},     {2, 3, 10, 11},   {4, 5, 12, 13},   {6, 7, 14, 15},
    {16, 17, 24, 25}, {18, 19, 26, 27}, {20, 21, 28, 29}, {22, 23, 30, 31},
};

struct Product {
  Part a, b, c;
  void* d;
  Element td;
};

struct Move {
  Element type;
  void* own;
  char* memory;
  ulong columns, x, y;
  bool transposed;
};

int size_of(Element type) { return type == Element::f32 ? 4 : 2; }

double number_of(Element type, const void* elements, int i) {
  if (type == Element::f32) return ((const float*)elements)[i];
  const uint16_t bits = ((const uint16_t*)elements)[i];
  return type == Element::f16 ? numbers::half_to_float(bits) : numbers::brain_to_float(bits);
}

void put(Element type, void* elements, int i, float value) {
  if (type == Element::f32) ((float*)elements)[i] = value;
  else ((uint16_t*)elements)[i] = type == Element::f16 ? numbers::float_to_half(value) : numbers::float_to_brain(value);
}

bool whole(const machine::Group& g, const char* what) {
  for (int i = 0; i < LANES; ++i)
    if (i >= (int)g.count || !g.has((unsigned)i)) {
      machine::report("divergent-collective", "%s at {0} needs all 32 threads of the simdgroup", what);
      return false;
    }
  return true;
}

void gather(const machine::Group& g, Part Product::*which, double out[SIDE][SIDE]) {
  for (int r = 0; r < SIDE; ++r)
    for (int c = 0; c < SIDE; ++c) {
      const Part& part = g.of<Product>((unsigned)HOLDER[r][c / 2]).*which;
      out[r][c] = number_of(part.type, part.elements, c % 2);
    }
}

void run_product(machine::Group& g) {
  if (!whole(g, "simdgroup_multiply_accumulate")) return;
  double a[SIDE][SIDE], b[SIDE][SIDE], c[SIDE][SIDE];
  gather(g, &Product::a, a);
  gather(g, &Product::b, b);
  gather(g, &Product::c, c);
  for (int i = 0; i < SIDE; ++i)
    for (int j = 0; j < SIDE; ++j) {
      double sum = c[i][j];
      for (int k = 0; k < SIDE; ++k) sum += a[i][k] * b[k][j];
      const Product& p = g.of<Product>((unsigned)HOLDER[i][j / 2]);
      put(p.td, p.d, j % 2, (float)sum);
    }
}

template <bool LOADS> void run_move(machine::Group& g) {
  if (!whole(g, LOADS ? "simdgroup_load" : "simdgroup_store")) return;
  for (int r = 0; r < SIDE; ++r)
    for (int c = 0; c < SIDE; ++c) {
      const unsigned lane = (unsigned)HOLDER[r][c / 2];
      const Move& m = g.of<Move>(lane);
      const ulong row = m.y + (ulong)(m.transposed ? c : r), column = m.x + (ulong)(m.transposed ? r : c);
      const int size = size_of(m.type);
      char* at = m.memory + (row * m.columns + column) * (ulong)size;
      char* own = (char*)m.own + c % 2 * size;
      if (LOADS) machine::load(g.actor(lane), at, own, (size_t)size, (size_t)size);
      else machine::store(g.actor(lane), at, own, (size_t)size, (size_t)size);
    }
}
}  // namespace

void multiply(void* d, Element td, Part a, Part b, Part c) {
  Product p = {a, b, c, d, td};
  machine::subgroup_collective("simdgroup_multiply_accumulate", 0xffffffffu, &p, run_product);
}
void load(void* to, Element type, const void* from, ulong columns, ulong x, ulong y, bool transposed) {
  Move m = {type, to, (char*)from, columns, x, y, transposed};
  machine::subgroup_collective("simdgroup_load", 0xffffffffu, &m, run_move<true>);
}
void store(const void* from, Element type, void* to, ulong columns, ulong x, ulong y, bool transposed) {
  Move m = {type, (void*)from, (char*)to, columns, x, y, transposed};
  machine::subgroup_collective("simdgroup_store", 0xffffffffu, &m, run_move<false>);
}

}  // namespace metal
