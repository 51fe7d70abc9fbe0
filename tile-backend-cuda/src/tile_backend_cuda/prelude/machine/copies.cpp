// Asynchronous copies of a thread. PTX ISA, "cp.async", "cp.async.commit_group", "cp.async.mbarrier.arrive", "st.async".
#include "cuda_host.h"
#include "operations.h"

namespace cuda {

namespace {
struct Copy : machine::Operation {
  uint32_t to;
  const void* from;
  unsigned bytes, taken;              // the rest is filled with zeros

  void perform() override {
    unsigned char data[16] = {};
    if (taken) machine::load(actor, from, data, taken, taken == bytes ? bytes : 1);
    machine::store(actor, machine::shared_pointer(to), data, bytes, bytes);
  }
};

struct RemoteStore : machine::Operation {
  uint32_t to, barrier;
  unsigned char data[16];
  unsigned bytes;

  void perform() override {
    machine::store(actor, machine::shared_pointer(to), data, bytes, bytes);
    machine::complete(*this, barrier, bytes);
  }
};
}  // namespace

void copy_async(uint32_t to, const void* from, unsigned bytes, unsigned taken) {
  if (taken > bytes) machine::report("bad-operand", "cp.async at {0} takes %u bytes of a copy of %u", taken, bytes);
  auto copy = std::make_unique<Copy>();
  copy->to = to;
  copy->from = from;
  copy->bytes = bytes;
  copy->taken = taken;
  machine::submit(machine::Queue::copy, std::move(copy), 1, "cp.async", machine::Proxy::copy);
}

void copy_commit() { machine::commit(machine::Queue::copy, machine::here->index); }
void copy_wait(unsigned left) { machine::wait_group(machine::Queue::copy, machine::here->index, 1, left); }
void copy_wait_all() { machine::wait_all(machine::Queue::copy, machine::here->index, 1); }
void copy_arrive(uint32_t barrier) { machine::after_queue(machine::Queue::copy, machine::here->index, barrier); }

void store_async(uint32_t to, const void* value, unsigned bytes, uint32_t barrier) {
  if (to >> 24 != barrier >> 24) machine::report("bad-operand", "st.async at {0}: its barrier is in another block than its data");
  machine::check_visible(machine::actor_of(*machine::here), barrier);
  auto store = std::make_unique<RemoteStore>();
  store->to = to;
  store->barrier = barrier;
  store->bytes = bytes;
  memcpy(store->data, value, bytes);
  machine::submit_transaction(std::move(store), "st.async");
}

}  // namespace cuda
