// Matrix instructions of a warp. PTX ISA, "Matrix multiply-accumulate operation using mma instruction", "ldmatrix", "stmatrix".
#include "cuda_host.h"
#include "operations.h"
#include "elements.h"

namespace cuda {

using machine::Group;

namespace {
const uint64_t WARP = 0xffffffffu;

struct Product {
  int m, n, k;
  Type td, ta, tb;
  void* d;
  const void *a, *b, *c;
};

struct Move {
  int count;
  bool transposed;
  uint32_t address;
  uint32_t* to;
  const uint32_t* from;
};

bool whole(const Group& g, const char* what) {
  for (unsigned i = 0; i < 32; ++i)
    if (i >= g.count || !g.has(i)) {
      machine::report("divergent-collective", "%s at {0} needs all 32 lanes of the warp", what);
      return false;
    }
  return true;
}

// A of m16: register r, element e of lane t is row t/4 + 8*(r%2), column (t%4)*per + e + 4*per*(r/2); m8n8k4: one row a lane.
void gather_a(const Group& g, const Product& p, double* a) {
  const int per = elements_per_register(p.ta), registers = p.m * p.k / 32 / per;
  for (unsigned t = 0; t < 32; ++t)
    for (int r = 0; r < registers; ++r)
      for (int e = 0; e < per; ++e) {
        const int row = (int)t / 4 + 8 * (r % 2), column = (int)(t % 4) * per + e + 4 * per * (r / 2);
        a[row * p.k + column] = element(p.ta, g.of<Product>(t).a, r, e);
      }
}

// B of n8: row (t%4)*per + e + 4*per*r, column t/4.
void gather_b(const Group& g, const Product& p, double* b) {
  const int per = elements_per_register(p.tb), registers = p.n * p.k / 32 / per;
  for (unsigned t = 0; t < 32; ++t)
    for (int r = 0; r < registers; ++r)
      for (int e = 0; e < per; ++e)
        b[((int)(t % 4) * per + e + 4 * per * r) * p.n + (int)t / 4] = element(p.tb, g.of<Product>(t).b, r, e);
}

void run_product(Group& g) {
  if (!whole(g, "mma")) return;
  const Product& p = g.of<Product>(0);
  double a[16 * 64], b[64 * 8], sums[16 * 8];
  gather_a(g, p, a);
  gather_b(g, p, b);
  const int per = elements_per_register(p.td), mine = p.m * p.n / 32;
  for (unsigned t = 0; t < 32; ++t)     // element i of lane t: row t/4 + 8*(i/2), column (t%4)*2 + i%2
    for (int i = 0; i < mine; ++i) {
      const int row = (int)t / 4 + 8 * (i / 2), column = (int)(t % 4) * 2 + i % 2;
      double s = element(p.td, g.of<Product>(t).c, i / per, i % per);
      for (int k = 0; k < p.k; ++k) s += a[row * p.k + k] * b[k * p.n + column];
      sums[t * 4 + (unsigned)i] = s;
    }
  for (unsigned t = 0; t < 32; ++t)
    for (int i = 0; i < mine; ++i) put(p.td, g.of<Product>(t).d, i / per, i % per, sums[t * 4 + (unsigned)i]);
}

bool aligned(const Move& m, unsigned lane, const char* what) {
  if (m.address % 16 == 0) return true;
  machine::report("misaligned", "%s at {0}: the row address 0x%x of lane %u is not aligned to 16 bytes", what, m.address, lane);
  return false;
}

// Rows of matrix q come from the addresses of lanes 8q to 8q+7; lane t holds row t/4, columns (t%4)*2 and +1 (transposed: swapped).
template <bool LOADS> void run_move(Group& g) {
  const char* what = LOADS ? "ldmatrix" : "stmatrix";
  if (!whole(g, what)) return;
  const int count = g.of<Move>(0).count;
  for (unsigned q = 0; q < (unsigned)count; ++q)
    for (unsigned t = 0; t < 32; ++t) {
      Move& m = g.of<Move>(t);
      uint16_t pair[2];
      if (!LOADS) memcpy(pair, &m.from[q], 4);
      for (unsigned i = 0; i < 2; ++i) {
        const unsigned row = m.transposed ? t % 4 * 2 + i : t / 4, column = m.transposed ? t / 4 : t % 4 * 2 + i;
        const Move& source = g.of<Move>(q * 8 + row);
        if (!aligned(source, q * 8 + row, what)) return;
        char* p = (char*)machine::shared_pointer(source.address) + column * 2;
        if (LOADS) machine::load(g.actor(t), p, &pair[i], 2, 2);
        else machine::store(g.actor(t), p, &pair[i], 2, 2);
      }
      if (LOADS) memcpy(&m.to[q], pair, 4);
    }
}
}  // namespace

void mma(int m, int n, int k, Type td, Type ta, Type tb, void* d, const void* a, const void* b, const void* c) {
  Product p = {m, n, k, td, ta, tb, d, a, b, c};
  machine::subgroup_collective("mma", WARP, &p, run_product);
}

void ldmatrix(int count, bool transposed, uint32_t* d, uint32_t address) {
  Move m = {count, transposed, address, d, nullptr};
  machine::subgroup_collective("ldmatrix", WARP, &m, run_move<true>);
}

void stmatrix(int count, bool transposed, uint32_t address, const uint32_t* s) {
  Move m = {count, transposed, address, nullptr, s};
  machine::subgroup_collective("stmatrix", WARP, &m, run_move<false>);
}

// movmatrix.trans: the 8x8 matrix of 16 bits that the warp holds, transposed
uint32_t movmatrix(uint32_t value) {
  uint32_t operands[2] = {value, 0};
  machine::subgroup_collective("movmatrix", WARP, operands, [](Group& g) {
    if (!whole(g, "movmatrix")) return;
    uint16_t m[8][8];
    for (unsigned t = 0; t < 32; ++t) memcpy(&m[t / 4][t % 4 * 2], g.operands[t], 4);
    for (unsigned t = 0; t < 32; ++t) {
      const uint16_t pair[2] = {m[t % 4 * 2][t / 4], m[t % 4 * 2 + 1][t / 4]};
      memcpy((uint32_t*)g.operands[t] + 1, pair, 4);
    }
  });
  return operands[1];
}

}  // namespace cuda
