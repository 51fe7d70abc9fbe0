// Loads from global memory to the LDS. MI200 and MI300 ISA: the wave writes from the address in M0 on, lane after lane; vmcnt counts
// instructions in order. Only these loads are counted here: on a device others count as well, so that a wait waits for more.
#include "hip_host.h"
#include "operations.h"

namespace hip {

using machine::Group;

namespace {
struct Copy : machine::Operation {
  u32 to;
  const void* from;
  unsigned bytes;

  void perform() override {
    unsigned char data[16] = {};
    if (from != (const void*)zero_words) machine::load(actor, from, data, bytes, bytes);
    machine::store(actor, machine::shared_pointer(to), data, bytes, bytes);
  }
};

struct Start {
  u32 to;
};

// M0 is of the wave: all lanes take the address of the first one.
void same_place(Group& g) {
  u32 first = 0;
  bool any = false;
  for (unsigned i = 0; i < g.count; ++i) {
    if (!g.has(i)) continue;
    Start& s = g.of<Start>(i);
    if (!any) first = s.to;
    else if (s.to != first) machine::report("bad-operand", "lane %u of a load to the LDS at {0} names another place than the first", i);
    any = true;
    s.to = first;
  }
}
}  // namespace

void lds_copy(u32 to, const void* from, unsigned size) {
  Start s = {to};
  machine::subgroup_collective("a load to the LDS", ~0ull, &s, same_place);
  auto copy = std::make_unique<Copy>();
  copy->to = s.to + machine::here->lane * size;
  copy->from = from;
  copy->bytes = size;
  machine::submit(machine::Queue::copy, std::move(copy), 1, "a load to the LDS", machine::Proxy::copy);
  machine::commit(machine::Queue::copy, machine::here->index);
}

void copies_wait(unsigned left) { machine::wait_group(machine::Queue::copy, machine::here->index, 1, left); }

}  // namespace hip
