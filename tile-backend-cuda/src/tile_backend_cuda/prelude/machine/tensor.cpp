// Bulk and tensor copies. PTX ISA, "cp.async.bulk", "cp.async.bulk.tensor", "cp.reduce.async.bulk", "Tensors" (tiled mode).
#include "cuda_host.h"
#include "elements.h"
#include "operations.h"
#include "swizzle.h"

namespace cuda {

namespace {
uint32_t offset_of(uint32_t address) { return address & 0xffffff; }

bool fits(uint32_t value, uint32_t alignment, const char* what) {
  if (value % alignment == 0) return true;
  machine::report("misaligned", "%s (0x%x) at {0} is not a multiple of %u bytes", what, value, alignment);
  return false;
}

// One row of a box: its bytes in shared memory, and the part of it that lies in the tensor.
struct Row {
  uint32_t place;                     // bytes from the box's start
  uint64_t address;                   // of the first element inside
  uint32_t skipped, inside;           // bytes
};

// Calls f for each row of the box at `at`; rows outside of the tensor have no bytes inside.
template <class F> void for_rows(const Map& m, const int* at, F f) {
  const int64_t row_bytes = (int64_t)m.box[0] * m.bytes;
  uint32_t index[5] = {}, rows = 1;
  for (int d = 1; d < m.rank; ++d) rows *= m.box[d];
  for (uint32_t r = 0; r < rows; ++r) {
    uint64_t address = m.base;
    bool inside = true;
    for (int d = 1; d < m.rank; ++d) {
      const int64_t x = (int64_t)at[d] + (int64_t)index[d] * m.steps[d];
      inside &= x >= 0 && x < (int64_t)m.sizes[d];
      address += (uint64_t)x * m.strides[d - 1];
    }
    const int64_t first = at[0] < 0 ? -(int64_t)at[0] : 0;
    int64_t last = (int64_t)m.sizes[0] - at[0];
    if (last > (int64_t)m.box[0]) last = m.box[0];
    Row row = {(uint32_t)(r * row_bytes), 0, 0, 0};
    if (inside && last > first) {
      row.skipped = (uint32_t)(first * m.bytes);
      row.inside = (uint32_t)((last - first) * m.bytes);
      row.address = address + (uint64_t)((at[0] + first) * m.bytes);
    }
    f(row);
    for (int d = 1; d < m.rank; ++d) {
      if (++index[d] < m.box[d]) break;
      index[d] = 0;
    }
  }
}

uint32_t box_bytes(const Map& m) {
  uint32_t n = m.bytes;
  for (int d = 0; d < m.rank; ++d) n *= m.box[d];
  return n;
}

uint32_t add(Type type, uint32_t a, uint32_t b) {
  return type == F16 ? add_f16x2(a, b) : type == BF16 ? add_bf16x2(a, b) : type == F32 ? add_f32(a, b) : a + b;
}

void store_global(const machine::Actor& actor, uint64_t address, const unsigned char* data, uint32_t bytes, int adds, Type type) {
  if (!adds) {
    machine::store(actor, (void*)address, data, bytes, 1);
    return;
  }
  machine::Actor atomic = actor;
  atomic.atomic = true;
  for (uint32_t i = 0; i < bytes; i += 4) {
    uint32_t old = 0, more = 0;
    const uint32_t n = bytes - i < 4 ? bytes - i : 4;
    machine::load(atomic, (void*)(address + i), &old, n, 1);
    memcpy(&more, data + i, n);
    old = add(type, old, more);
    machine::store(atomic, (void*)(address + i), &old, n, 1);
  }
}

struct Load : machine::Operation {
  Map map;
  int at[5];
  uint32_t to, barrier;
  uint16_t mask;

  void perform() override {
    std::vector<unsigned char> row_data(map.box[0] * map.bytes);
    const uint32_t span = span_of(map.swizzle);
    for_rows(map, at, [&](const Row& row) {
      std::fill(row_data.begin(), row_data.end(), 0);
      if (map.nan) fill_nan(row_data);
      if (row.inside) machine::load(actor, (const void*)row.address, &row_data[row.skipped], row.inside, 1);
      for (uint32_t block = 0; block < 16; ++block)
        if (mask >> block & 1)
          for (uint32_t i = 0; i < row_data.size(); i += 16)
            machine::store(actor, machine::shared_pointer(block << 24 | swizzled(offset_of(to) + row.place + i, span)), &row_data[i], 16, 16);
    });
    for (uint32_t block = 0; block < 16; ++block)
      if (mask >> block & 1) machine::complete(*this, block << 24 | offset_of(barrier), box_bytes(map));
  }

  void fill_nan(std::vector<unsigned char>& data) {   // outside of the tensor: NaN of the type
    const uint32_t nan = map.type == F32 || map.type == TF32 ? 0x7fffffffu : 0x7fff7fffu;
    for (size_t i = 0; i + 4 <= data.size(); i += 4) memcpy(&data[i], &nan, 4);
  }
};

struct Store : machine::Operation {
  Map map;
  int at[5];
  uint32_t from;
  bool adds;

  void perform() override {
    std::vector<unsigned char> data(map.box[0] * map.bytes);
    const uint32_t span = span_of(map.swizzle);
    for_rows(map, at, [&](const Row& row) {
      if (!row.inside) return;
      for (uint32_t i = row.skipped & ~15u; i < row.skipped + row.inside; i += 16)
        machine::load(actor, machine::shared_pointer((from & 0xff000000u) | swizzled(offset_of(from) + row.place + i, span)), &data[i], 16, 16);
      store_global(actor, row.address, &data[row.skipped], row.inside, adds, (Type)map.type);
    });
  }
};

struct BulkLoad : machine::Operation {
  uint32_t to, bytes, barrier;
  const void* from;
  uint16_t mask;

  void perform() override {
    std::vector<unsigned char> data(bytes);
    machine::load(actor, from, data.data(), bytes, 16);
    for (uint32_t block = 0; block < 16; ++block)
      if (mask >> block & 1) {
        machine::store(actor, machine::shared_pointer(block << 24 | offset_of(to)), data.data(), bytes, 16);
        machine::complete(*this, block << 24 | offset_of(barrier), bytes);
      }
  }
};

struct BulkStore : machine::Operation {
  void* to;
  uint32_t from, bytes;
  int adds;

  void perform() override {
    std::vector<unsigned char> data(bytes);
    machine::load(actor, machine::shared_pointer(from), data.data(), bytes, 16);
    const Type types[] = {F32, F32, F16, BF16};
    store_global(actor, (uint64_t)to, data.data(), bytes, adds, types[adds]);
  }
};

bool legal(int rank, const Map& m, uint32_t shared, const int* at) {
  if (m.rank != rank) {
    machine::report("bad-operand", "a copy of %d dimensions at {0} with a tensor map of %d", rank, m.rank);
    return false;
  }
  // Measured on an H200: every copy whose rows begin elsewhere ends with an illegal instruction.
  if (at[0] * (int)m.bytes % 16 != 0) {
    machine::report("bad-operand", "a tensor copy at {0} begins at element %d of a row, %d bytes from its start: no multiple of 16", at[0], at[0] * (int)m.bytes);
    return false;
  }
  // PTX ISA, "Tensor-copy": shared addresses are multiples of 128 bytes
  return fits(shared, 128, "the shared address of a tensor copy");
}

uint16_t blocks(uint16_t mask, uint32_t barrier) {
  const machine::Actor me = machine::actor_of(*machine::here);
  if (!mask) {
    machine::check_visible(me, barrier);
    return (uint16_t)(1u << (barrier >> 24));
  }
  for (uint32_t block = 0; block < 16; ++block)
    if (mask >> block & 1) {
      if (block >= machine::here->ranks) machine::report("bad-operand", "a multicast at {0} names block %u, the cluster has %u", block, machine::here->ranks);
      else machine::check_visible(me, block << 24 | offset_of(barrier));
    }
  return (uint16_t)(mask & ((1u << machine::here->ranks) - 1));
}
}  // namespace

void tensor_load(int rank, uint32_t to, const void* map, uint32_t barrier, const int* at, uint16_t mask) {
  auto load = std::make_unique<Load>();
  memcpy((void*)&load->map, map, sizeof(Map));
  if (!legal(rank, load->map, to, at)) return;
  std::copy(at, at + rank, load->at);
  load->to = to;
  load->barrier = barrier;
  load->mask = blocks(mask, barrier);
  machine::submit_transaction(std::move(load), "a tensor load");
}

void tensor_store(int rank, const void* map, uint32_t from, const int* at, bool adds) {
  auto store = std::make_unique<Store>();
  memcpy((void*)&store->map, map, sizeof(Map));
  if (!legal(rank, store->map, from, at)) return;
  // Loads may begin before the tensor, stores may not (measured on an H200: an illegal instruction).
  for (int d = 0; d < rank; ++d)
    if (at[d] < 0) {
      machine::report("bad-operand", "a tensor store at {0} begins at the negative coordinate %d", at[d]);
      return;
    }
  std::copy(at, at + rank, store->at);
  store->from = from;
  store->adds = adds;
  machine::submit(machine::Queue::bulk, std::move(store), 1, "a tensor store", machine::Proxy::async);
}

void bulk_load(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier, uint16_t mask) {
  if (!fits(bytes, 16, "the size of a bulk copy") || !fits(to, 16, "the shared address of a bulk copy")) return;
  auto load = std::make_unique<BulkLoad>();
  load->to = to;
  load->from = from;
  load->bytes = bytes;
  load->barrier = barrier;
  load->mask = blocks(mask, barrier);
  machine::submit_transaction(std::move(load), "a bulk load");
}

void bulk_store(void* to, uint32_t from, uint32_t bytes, int adds) {
  if (!fits(bytes, 16, "the size of a bulk copy") || !fits((uint32_t)(uint64_t)to, 16, "the global address of a bulk copy")) return;
  auto store = std::make_unique<BulkStore>();
  store->to = to;
  store->from = from;
  store->bytes = bytes;
  store->adds = adds;
  machine::submit(machine::Queue::bulk, std::move(store), 1, "a bulk store", machine::Proxy::async);
}

// shared memory of this block to that of another, completing at a barrier there
void bulk_to_block(uint32_t to, uint32_t from, uint32_t bytes, uint32_t barrier) {
  if (!fits(bytes, 16, "the size of a bulk copy") || !fits(to, 16, "the shared address of a bulk copy")) return;
  if (to >> 24 != barrier >> 24) machine::report("bad-operand", "a bulk copy at {0}: its barrier is in another block than its data");
  bulk_load(to, machine::shared_pointer(from), bytes, barrier, (uint16_t)(1u << (to >> 24)));
}

void bulk_commit() { machine::commit(machine::Queue::bulk, machine::here->index); }
void bulk_wait(unsigned left) { machine::wait_group(machine::Queue::bulk, machine::here->index, 1, left); }

}  // namespace cuda
