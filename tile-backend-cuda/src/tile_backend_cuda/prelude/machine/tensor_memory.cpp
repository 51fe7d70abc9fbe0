// Tensor memory and the matrix unit that adds up in it. PTX ISA, "TensorCore 5th Generation Family Instructions".
#include <algorithm>

#include "cuda_host.h"
#include "elements.h"
#include "operations.h"
#include "shared_matrix.h"

namespace cuda {

using machine::Group;

namespace {
const unsigned TMEM_LANES = 128, TMEM_COLUMNS = 512, TMEM_RANKS = 16;

// A word on its way between a register and a cell, until its thread waits.
struct TmemMove {
  unsigned thread;
  bool loads;
  uint32_t *to, value;
};

// The tensor memory of one block: an address is (lane << 16) | column. Columns are allocated by powers of two.
struct TensorMemory {
  uint32_t words[TMEM_LANES][TMEM_COLUMNS];
  unsigned writing[TMEM_COLUMNS];          // products in flight, by the columns that they write
  bool taken[TMEM_COLUMNS];
  machine::Index3 block;
  bool used;
  std::vector<TmemMove> moves;            // not yet waited for
};
TensorMemory memories[TMEM_RANKS];

// Columns that a block does not give back are lost to the blocks after it.
void check_freed() {
  for (unsigned rank = 0; rank < TMEM_RANKS; ++rank) {
    TensorMemory& m = memories[rank];
    if (m.used && std::any_of(m.taken, m.taken + TMEM_COLUMNS, [](bool t) { return t; }))
      machine::report("bad-operand", "a block ends without tcgen05.dealloc of its tensor memory; its last helper is at {0}");
    m.used = false;
  }
}

TensorMemory& memory() {
  TensorMemory& m = memories[machine::here->rank];
  const machine::Index3 b = machine::here->block;
  if (!m.used || m.block.x != b.x || m.block.y != b.y || m.block.z != b.z) {
    machine::when_blocks_end(check_freed);
    m.used = true;
    m.block = b;
    memset(m.words, 0xff, sizeof m.words);   // not a number
    memset(m.writing, 0, sizeof m.writing);
    memset(m.taken, 0, sizeof m.taken);
    m.moves.clear();
  }
  return m;
}

// Whether the columns were allocated; reports where not.
bool allocated(const TensorMemory& m, uint32_t address, unsigned columns, const char* what) {
  const unsigned first = address & 0xffff;
  for (unsigned c = first; c < first + columns; ++c)
    if (c >= TMEM_COLUMNS || !m.taken[c]) {
      machine::report("bad-operand", "%s at {0} uses column %u of tensor memory, which is not allocated", what, c);
      return false;
    }
  return true;
}

struct TmemInstruction {                  // PTX ISA, "Instruction descriptor": .kind::f16, tf32, f8f6f4 and i8
  Type a, b;
  bool integers, a_transposed, b_transposed;
  int m, n, k;

  TmemInstruction(int kind, uint32_t d) {
    const Type halves[3] = {F16, BF16, TF32}, bytes[2] = {E4M3_, E5M2_}, whole[2] = {U8, S8};
    const uint32_t fa = d >> 7 & 7, fb = d >> 10 & 7;
    integers = kind == 3;
    a = kind == 3 ? whole[fa & 1] : kind == 2 ? bytes[fa & 1] : halves[fa % 3];
    b = kind == 3 ? whole[fb & 1] : kind == 2 ? bytes[fb & 1] : halves[fb % 3];
    a_transposed = d >> 15 & 1;
    b_transposed = d >> 16 & 1;
    n = (int)(d >> 17 & 63) * 8;
    m = (int)(d >> 24 & 31) * 16;
    k = 256 / bits(a);
    const uint32_t sums = d >> 4 & 3;
    if ((kind == 1) != (fa == 2) || sums != (integers ? 2u : 1u))
      machine::report("bad-operand", "tcgen05.mma at {0}: types of its descriptor do not belong to its kind, or are not emulated");
    if (m != 128 || n < 16 || n > 256 || n % 16)
      machine::report("bad-operand", "tcgen05.mma at {0} has no shape of %d x %d", m, n);
  }
};

struct TmemMultiply : machine::Operation {
  TensorMemory* memory;
  TmemInstruction o;
  uint64_t descriptor_a, descriptor_b;
  uint32_t tensor, block;
  bool adds;

  explicit TmemMultiply(const TmemInstruction& of) : o(of) {}

  Matrix matrix(uint64_t descriptor, Type type, bool along_mn) const {
    const uint32_t spans[8] = {0, 0, 128, 0, 64, 0, 32, 0};
    return Matrix(descriptor, spans[descriptor >> 61], type, along_mn, block);
  }

  void perform() override {
    const std::vector<double> a = matrix(descriptor_a, o.a, o.a_transposed).elements(actor, o.m, o.k);
    const std::vector<double> b = matrix(descriptor_b, o.b, o.b_transposed).elements(actor, o.n, o.k);
    for (int row = 0; row < o.m; ++row)
      for (int column = 0; column < o.n; ++column) {
        const double *x = &a[(size_t)(row * o.k)], *y = &b[(size_t)(column * o.k)];
        double s = 0;
        for (int k = 0; k < o.k; ++k) s += x[k] * y[k];
        uint32_t* d = &memory->words[row][(tensor & 0xffff) + (unsigned)column];
        const Type type = o.integers ? S32 : F32;
        put(type, d, 0, 0, adds ? s + element(type, d, 0, 0) : s);
      }
    for (int column = 0; column < o.n; ++column) --memory->writing[(tensor & 0xffff) + (unsigned)column];
  }
};

struct TmemAccess {
  uint32_t* registers;
  uint32_t tensor;
  unsigned count;
  bool loads;
};

// Lane t of a warp reaches lane 32 (warp % 4) + t alone; all lanes name the same address.
void run_tmem_access(Group& g) {
  const TmemAccess& o = g.of<TmemAccess>(0);
  const char* what = o.loads ? "tcgen05.ld" : "tcgen05.st";
  TensorMemory& m = memory();
  const unsigned warp = machine::thread_at(g.first).subgroup % 4;
  if (o.tensor >> 16 != 32 * warp)
    machine::report("bad-operand", "%s at {0}: warp %u of a warpgroup reaches lanes from %u on, not from %u", what, warp, 32 * warp, o.tensor >> 16);
  if (!allocated(m, o.tensor, o.count, what)) return;
  for (unsigned c = 0; c < o.count; ++c) {
    const unsigned column = (o.tensor & 0xffff) + c;
    if (m.writing[column]) {
      machine::report("missing-wait", "%s at {0} uses sums that a product in flight writes", what);
      return;
    }
    for (unsigned t = 0; t < 32; ++t) {
      const TmemAccess& x = g.of<TmemAccess>(t);
      if (x.tensor != o.tensor) machine::report("bad-operand", "%s at {0}: lane %u has another address than lane 0", what, t);
      uint32_t& cell = m.words[32 * warp + t][column];
      uint32_t& to = x.loads ? x.registers[c] : cell;
      const uint32_t value = x.loads ? cell : x.registers[c];
      if (machine::mode() == machine::Mode::early) {
        to = value;
        continue;
      }
      to = 0x7fffdead;                  // not a number
      m.moves.push_back({g.first + t, x.loads, &to, value});
    }
  }
}
}  // namespace

void tmem_allocate(uint32_t to, uint32_t columns) {
  uint32_t operands[2] = {to, columns};
  machine::subgroup_collective("tcgen05.alloc", 0xffffffffu, operands, [](Group& g) {
    const uint32_t* o = &g.of<uint32_t>(0);
    TensorMemory& m = memory();
    if (o[1] < 32 || o[1] > TMEM_COLUMNS || o[1] & (o[1] - 1)) {
      machine::report("bad-operand", "tcgen05.alloc at {0} of %u columns: powers of two from 32 to 512", o[1]);
      machine::stop();
    }
    for (uint32_t first = 0; first + o[1] <= TMEM_COLUMNS; first += o[1])
      if (std::none_of(m.taken + first, m.taken + first + o[1], [](bool t) { return t; })) {
        std::fill(m.taken + first, m.taken + first + o[1], true);
        store_shared<uint32_t>(o[0], first);
        return;
      }
    machine::report("deadlock", "tcgen05.alloc at {0} waits for %u columns that the block itself holds", o[1]);
    machine::stop();
  });
}

void tmem_free(uint32_t tensor, uint32_t columns) {
  uint32_t operands[2] = {tensor, columns};
  machine::subgroup_collective("tcgen05.dealloc", 0xffffffffu, operands, [](Group& g) {
    const uint32_t* o = &g.of<uint32_t>(0);
    TensorMemory& m = memory();
    if (!allocated(m, o[0], o[1], "tcgen05.dealloc")) return;
    for (uint32_t c = o[0]; c < o[0] + o[1]; ++c) {
      if (m.writing[c]) machine::report("missing-wait", "tcgen05.dealloc at {0} frees column %u, which a product in flight writes", c);
      m.taken[c] = false;
    }
  });
}

void tmem_multiply(int kind, uint32_t tensor, uint64_t a, uint64_t b, uint32_t instruction, uint32_t adds) {
  auto m = std::make_unique<TmemMultiply>(TmemInstruction(kind, instruction));
  m->memory = &memory();
  if (!allocated(*m->memory, tensor, (unsigned)m->o.n, "tcgen05.mma")) return;
  for (uint64_t d : {a, b})
    if ((d >> 46 & 7) != 1) machine::report("bad-operand", "tcgen05.mma at {0}: a descriptor without the constant 1 in bits 46 to 48");
  m->descriptor_a = a;
  m->descriptor_b = b;
  m->tensor = tensor;
  m->block = machine::here->rank;
  m->adds = adds;
  for (int c = 0; c < m->o.n; ++c) ++m->memory->writing[(tensor & 0xffff) + (unsigned)c];
  machine::submit(machine::Queue::copy, std::move(m), 1, "tcgen05.mma", machine::Proxy::async);
}

void tmem_commit(uint32_t barrier) {
  machine::check_visible(machine::actor_of(*machine::here), barrier);
  machine::after_queue(machine::Queue::copy, machine::here->index, barrier, true);
}

void tmem_load(unsigned count, uint32_t* registers, uint32_t tensor) {
  TmemAccess o = {registers, tensor, count, true};
  machine::subgroup_collective("tcgen05.ld", 0xffffffffu, &o, run_tmem_access);
}

void tmem_store(unsigned count, uint32_t tensor, const uint32_t* registers) {
  TmemAccess o = {(uint32_t*)registers, tensor, count, false};
  machine::subgroup_collective("tcgen05.st", 0xffffffffu, &o, run_tmem_access);
}

void tmem_wait(bool loads) {
  std::vector<TmemMove>& moves = memory().moves;
  const auto mine = [&](const TmemMove& m) { return m.thread == machine::here->index && m.loads == loads; };
  for (const TmemMove& m : moves)
    if (mine(m)) *m.to = m.value;
  moves.erase(std::remove_if(moves.begin(), moves.end(), mine), moves.end());
}

uint64_t tmem_descriptor(uint32_t address, uint32_t leading, uint32_t stride, uint32_t swizzle) {
  const uint64_t code = swizzle == 128 ? 2 : swizzle == 64 ? 4 : swizzle == 32 ? 6 : 0;
  return (descriptor(address, leading, stride, 0) & ~(3ull << 62)) | 1ull << 46 | code << 61;
}

}  // namespace cuda
