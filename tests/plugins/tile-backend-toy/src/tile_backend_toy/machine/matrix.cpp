// What `toy_multiply` computes, from the registers of all lanes at once.
#include "operations.h"
#include "toy.h"

namespace {
struct Operands {
  float* c;
  const half_t *a, *b;
};

void run(machine::Group& g) {
  for (unsigned lane = 0; lane < 32; ++lane)
    if (!g.has(lane)) return machine::report("divergent-collective", "toy_multiply at {0} needs all lanes");
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned j = 0; j < 2; ++j) {
      const unsigned column = lane % 4 * 2 + j;
      float& sum = g.of<Operands>(lane).c[j];
      for (unsigned k = 0; k < 16; ++k) {
        const half_t x = g.of<Operands>(lane / 4 * 4 + k / 4).a[k % 4], y = g.of<Operands>(column * 4 + k / 4).b[k % 4];
        sum += float16_to_float(x) * float16_to_float(y);
      }
    }
}
}  // namespace

void toy_multiply(float* c, const half_t* a, const half_t* b) {
  Operands own = {c, a, b};
  machine::subgroup_collective("toy_multiply", 0xffffffffu, &own, run);
}
