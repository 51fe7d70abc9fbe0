// Matrix instructions of a wave: which element each lane holds, and sums in double with one rounding at the end.
// MI200 and MI300 ISA, "Matrix arithmetic instructions"; RDNA3 and RDNA4 ISA, "Wave matrix multiply accumulate".
#include "hip_host.h"
#include "operations.h"

namespace hip {

using machine::Group;

namespace {
struct Place {
  int line, k;        // row of A or column of B
};
typedef Place (*Operand)(int side, int per, unsigned lane, int i);
typedef int (*Row)(unsigned lane, int v);

struct Product {
  const char* name;
  int side, k, per, sums;
  unsigned lanes;
  Type a, b;
  void* c;
  const void *pa, *pb;
  Operand operand;
  Row row;
};

int bytes(Type t) { return t == F32 || t == XF32 ? 4 : t == F16 || t == BF16 ? 2 : 1; }

// Formats of eight bits: OCP by the machine's; FNUZ has a bias of one more, and the code of minus zero is NaN.
double fnuz(u32 v, int exponent, int mantissa) {
  if (v == 0x80) return NAN;
  const int bias = 1 << (exponent - 1), e = (int)(v >> mantissa) & ((1 << exponent) - 1), m = (int)v & ((1 << mantissa) - 1);
  const double size = e ? ldexp(1 + ldexp(m, -mantissa), e - bias) : ldexp(m, 1 - bias - mantissa);
  return v & 0x80 ? -size : size;
}

double element(Type t, const void* from, int i) {
  const char* p = (const char*)from + i * bytes(t);
  u32 v = 0;
  memcpy(&v, p, (size_t)bytes(t));
  switch (t) {
    case F16: return numbers::half_to_float(v);
    case BF16: return numbers::brain_to_float(v);
    case F32: return numbers::float_of(v);
    case XF32: return numbers::float_of(v & ~0x1fffu);   // 10 bits of mantissa
    case S8: return (signed char)v;
    case FP8: return numbers::e4m3_to_float(v);
    case BF8: return numbers::e5m2_to_float(v);
    case FP8Z: return fnuz(v, 4, 3);
    default: return fnuz(v, 5, 2);
  }
}

// MFMA with one block: lanes go through the lines, then through groups of `per` neighbours along k.
Place mfma_operand(int side, int per, unsigned lane, int i) { return {(int)lane % side, (int)lane / side * per + i}; }
int mfma_row_32(unsigned lane, int v) { return 8 * (v / 4) + 4 * ((int)lane / 32) + v % 4; }
int mfma_row_16(unsigned lane, int v) { return 4 * ((int)lane / 16) + v; }
// RDNA3: both halves of the wave hold the whole line. RDNA4: elements of 16 bits change halves every four, bytes every eight.
Place wmma3_operand(int, int, unsigned lane, int i) { return {(int)lane % 16, i}; }
int wmma3_row(unsigned lane, int v) { return 2 * v + (int)lane / 16; }
Place wmma4_operand_16(int, int, unsigned lane, int i) { return {(int)lane % 16, 8 * (i / 4) + 4 * ((int)lane / 16) + i % 4}; }
Place wmma4_operand_8(int, int, unsigned lane, int i) { return {(int)lane % 16, 8 * ((int)lane / 16) + i}; }
int wmma4_row(unsigned lane, int v) { return 8 * ((int)lane / 16) + v; }

bool whole(const Group& g, const Product& p) {
  for (unsigned i = 0; i < p.lanes; ++i)
    if (i >= g.count || !g.has(i)) {
      machine::report("divergent-collective", "%s at {0} needs all %u lanes of the wave", p.name, p.lanes);
      return false;
    }
  return true;
}

void run_product(Group& g) {
  const Product& p = g.of<Product>(0);
  if (!whole(g, p)) return;
  static double a[32 * 64], b[32 * 64];
  for (unsigned lane = 0; lane < p.lanes; ++lane)
    for (int i = 0; i < p.per; ++i) {
      const Product& from = g.of<Product>(lane);
      const Place at = p.operand(p.side, p.per, lane, i);
      a[at.line * p.k + at.k] = element(p.a, from.pa, i);
      b[at.line * p.k + at.k] = element(p.b, from.pb, i);
    }
  for (unsigned lane = 0; lane < p.lanes; ++lane)
    for (int v = 0; v < p.sums; ++v) {
      const double *left = a + p.row(lane, v) * p.k, *right = b + (int)lane % p.side * p.k;
      float* real = (float*)g.of<Product>(lane).c + v;
      int* integer = (int*)g.of<Product>(lane).c + v;
      double sum = p.a == S8 ? *integer : *real;
      for (int k = 0; k < p.k; ++k) sum += left[k] * right[k];
      if (p.a == S8) *integer = (int)(u32)(int64_t)sum;
      else *real = (float)sum;
    }
}

void start(Product& p) {
  if (p.lanes != machine::here->subgroup_size) {
    machine::report("unsupported", "%s at {0} is an instruction of waves of %u lanes", p.name, p.lanes);
    machine::stop();
  }
  machine::subgroup_collective(p.name, ~0ull, &p, run_product);
}
}  // namespace

void mfma(int, int side, int k, Type a, Type b, void* c, const void* pa, const void* pb) {
  Product p = {"mfma", side, k, k * side / 64, side * side / 64, 64, a, b, c, pa, pb, mfma_operand, side == 32 ? mfma_row_32 : mfma_row_16};
  start(p);
}

void wmma(int generation, int side, int k, Type a, Type b, void* c, const void* pa, const void* pb) {
  Product p = {"wmma", side, k, 16, 8, 32, a, b, c, pa, pb, wmma3_operand, wmma3_row};
  if (generation == 4) {
    p.per = 8;
    p.operand = bytes(a) == 2 ? wmma4_operand_16 : wmma4_operand_8;
    p.row = wmma4_row;
  }
  start(p);
}

}  // namespace hip
