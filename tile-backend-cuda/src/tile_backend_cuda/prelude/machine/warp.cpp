// Instructions of a warp that exchange registers. PTX ISA, "Data Movement: shfl.sync", "vote.sync", "redux.sync", "elect.sync".
#include <functional>

#include "cuda_host.h"
#include "operations.h"

namespace cuda {

using machine::Group;

namespace {
const uint64_t WHOLE = 0xffffffffu;

struct Exchange {
  uint32_t value, result;
  int kind, number, width;
};

uint32_t fold(int kind, uint32_t a, uint32_t b) {
  uint32_t (*const table[])(uint32_t, uint32_t) = {add_u32, min_u32, max_u32, min_s32, max_s32, and_b32, or_b32, xor_b32};
  return table[kind](a, b);
}

void run_shuffle(Group& g) {
  for (unsigned i = 0; i < g.count; ++i) {
    if (!g.has(i)) continue;
    Exchange& e = g.of<Exchange>(i);
    const int lane = (int)i, base = lane & ~(e.width - 1), last = base + e.width - 1;
    int from = lane;
    switch (e.kind) {
      case 0: from = lane ^ e.number; break;
      case 1: from = lane - e.number < base ? lane : lane - e.number; break;
      case 2: from = lane + e.number > last ? lane : lane + e.number; break;
      default: from = base | (e.number & (e.width - 1));
    }
    if (from > last) from = lane;     // xor may only reach segments at or below its own
    if (from >= (int)g.count || !g.has((unsigned)from)) {
      machine::report("divergent-collective", "lane %d reads lane %d in a shuffle at {0}, which takes no part", lane, from);
      from = lane;
    }
    e.result = g.of<Exchange>((unsigned)from).value;
  }
}

template <class F> void for_all(Group& g, F f) {
  for (unsigned i = 0; i < g.count; ++i)
    if (g.has(i)) f(i, g.of<Exchange>(i));
}
}  // namespace

uint32_t shuffle(int kind, uint32_t value, int number, int width) {
  Exchange e = {value, 0, kind, number, width};
  if (width < 1 || width > 32 || (width & (width - 1))) machine::report("bad-operand", "a shuffle at {0} has width %d", width);
  machine::subgroup_collective("a shuffle", WHOLE, &e, run_shuffle);
  return e.result;
}

uint32_t vote(bool predicate) {
  Exchange e = {predicate, 0, 0, 0, 0};
  machine::subgroup_collective("a vote", WHOLE, &e, [](Group& g) {
    uint32_t bits = 0;
    for_all(g, [&](unsigned i, Exchange& x) { bits |= x.value << i; });
    for_all(g, [&](unsigned, Exchange& x) { x.result = bits; });
  });
  return e.result;
}

uint32_t reduce(int kind, uint32_t value) {
  Exchange e = {value, 0, kind, 0, 0};
  machine::subgroup_collective("a reduction of the warp", WHOLE, &e, [](Group& g) {
    bool any = false;
    uint32_t all = 0;
    for_all(g, [&](unsigned, Exchange& x) { all = any ? fold(x.kind, all, x.value) : x.value; any = true; });
    for_all(g, [&](unsigned, Exchange& x) { x.result = all; });
  });
  return e.result;
}

uint32_t match_any(uint32_t value) {
  Exchange e = {value, 0, 0, 0, 0};
  machine::subgroup_collective("a match of the warp", WHOLE, &e, [](Group& g) {
    for_all(g, [&](unsigned, Exchange& x) {
      x.result = 0;
      for_all(g, [&](unsigned j, Exchange& y) { x.result |= (uint32_t)(x.value == y.value) << j; });
    });
  });
  return e.result;
}

// The ISA leaves the choice of the leader open; here it is the first lane, as on every device so far.
bool elect() {
  Exchange e = {0, 0, 0, 0, 0};
  machine::subgroup_collective("an election", WHOLE, &e, [](Group& g) {
    bool taken = false;
    for_all(g, [&](unsigned, Exchange& x) { x.result = !taken; taken = true; });
  });
  return e.result;
}

namespace {
// The barrier itself orders; counts are kept by parity so that the next call does not disturb this one.
uint32_t counted(unsigned id, bool predicate, const std::function<void()>& meet) {
  static uint32_t counts[16][16][2];
  static unsigned turn[16][16][1024];
  machine::Thread& me = *machine::here;
  unsigned& mine = turn[me.rank][id][me.number];
  uint32_t& count = counts[me.rank][id][mine++ & 1];
  count += predicate;
  meet();
  const uint32_t out = count;
  meet();
  count = 0;
  return out;
}
}  // namespace

uint32_t block_count(bool predicate) { return counted(0, predicate, [] { machine::block_barrier(); }); }

uint32_t named_count(unsigned id, unsigned threads, bool predicate) {
  return counted(id % 16, predicate, [=] { machine::named_sync(id, threads); });
}

}  // namespace cuda
