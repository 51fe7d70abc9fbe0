// Exchanges between the lanes of a simdgroup. MSL 6.9.2, table 6.14.
#include "metal_simd.h"
#include "operations.h"

namespace metal {

namespace {
struct Exchange {
  uint32_t value, result;
  Shuffle kind;
  int number;
};

void run_shuffle(machine::Group& g) {
  for (unsigned i = 0; i < g.count; ++i) {
    if (!g.has(i)) continue;
    Exchange& e = g.of<Exchange>(i);
    int from = e.number;
    if (e.kind == Shuffle::to_xor) from = (int)i ^ e.number;
    if (e.kind == Shuffle::up) from = (int)i < e.number ? (int)i : (int)i - e.number;   // the lower lanes keep their own
    if (from >= (int)g.count || !g.has((unsigned)from)) {
      machine::report("divergent-collective", "lane %u reads lane %d in a shuffle at {0}, which takes no part", i, from);
      from = (int)i;
    }
    e.result = g.of<Exchange>((unsigned)from).value;
  }
}
}  // namespace

uint32_t shuffle(Shuffle kind, uint32_t value, int number) {
  Exchange e = {value, 0, kind, number};
  machine::subgroup_collective("a shuffle", 0xffffffffu, &e, run_shuffle);
  return e.result;
}

// Barriers say by their flags whether they order device memory.
const bool apart = machine::global_apart = true;

// Blocks run one after the other: what an earlier one did before its fence is seen here from now on.
void fence() { machine::acquire_at(nullptr); }

}  // namespace metal
