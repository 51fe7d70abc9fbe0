// Matrix instructions of a warpgroup. PTX ISA, "Asynchronous warpgroup level matrix instructions": fragments, descriptors, canonical layouts.
#include "cuda_host.h"
#include "elements.h"
#include "operations.h"
#include "shared_matrix.h"

namespace cuda {

using machine::Group;

namespace {
const unsigned GROUP = 128, FENCED = 1;   // threads of a warpgroup; the mark of wgmma.fence

struct Operands {
  int n, k;
  Type td, ta, tb;
  bool a_transposed, b_transposed;    // stored along M or N
  void* d;
  const uint32_t* a;
  uint64_t descriptor_a, descriptor_b;
  int scale_d;
};

struct Multiply : machine::RegisterOperation {
  Operands o;
  std::vector<double> a;              // 64 x k, when A came in registers
  uint32_t block;

  Matrix matrix(uint64_t descriptor, Type type, bool along_mn) const {
    const uint32_t spans[4] = {0, 128, 64, 32};
    return Matrix(descriptor, spans[descriptor >> 62], type, along_mn, block);
  }

  void perform() override {
    if (!o.a) a = matrix(o.descriptor_a, o.ta, o.a_transposed).elements(actor, 64, o.k);
    const std::vector<double> b = matrix(o.descriptor_b, o.tb, o.b_transposed).elements(actor, o.n, o.k);
    const int per = elements_per_register(o.td);
    for (unsigned t = 0; t < GROUP; ++t)   // element i of thread t: row 16*warp + lane/4 + 8*(i/2%2), column 8*(i/4) + lane%4*2 + i%2
      for (int i = 0; i < o.n / 2; ++i) {
        const int row = (int)(16 * (t / 32) + t % 32 / 4) + 8 * (i / 2 % 2), column = 8 * (i / 4) + (int)(t % 4) * 2 + i % 2;
        const double *x = &a[(size_t)(row * o.k)], *y = &b[(size_t)(column * o.k)];
        double s = 0;
        for (int k = 0; k < o.k; ++k) s += x[k] * y[k];
        char* d = registers->of(t);
        if (o.scale_d) s += element(o.td, d, i / per, i % per);
        put(o.td, d, i / per, i % per, s);
      }
  }
};

void take_fragment(const Group& g, Multiply& m) {
  const int per = elements_per_register(m.o.ta);
  m.a.resize((size_t)(64 * m.o.k));
  for (unsigned t = 0; t < GROUP; ++t)
    for (int r = 0; r < 4; ++r)
      for (int e = 0; e < per; ++e) {
        const int row = (int)(16 * (t / 32) + t % 32 / 4) + 8 * (r % 2), column = (int)(t % 4) * per + e + 4 * per * (r / 2);
        m.a[(size_t)(row * m.o.k + column)] = element(m.o.ta, g.of<Operands>(t).a, r, e);
      }
}

void check(const Group& g) {
  const Operands& o = g.of<Operands>(0);
  const int step = bits(o.ta) == 8 && o.td == S32 && o.n > 32 ? 16 : 8;
  if (o.n < 8 || o.n > 256 || o.n % step) machine::report("bad-operand", "wgmma at {0} has no N of %d", o.n);
  for (unsigned t = 0; t < GROUP; ++t) {
    const Operands& x = g.of<Operands>(t);
    if (x.descriptor_b != o.descriptor_b || (!o.a && x.descriptor_a != o.descriptor_a) || !x.scale_d != !o.scale_d) {
      machine::report("bad-operand", "wgmma at {0}: thread %u of the warpgroup has another descriptor or scale than thread 0", t);
      return;
    }
    if (!(machine::thread_at(g.first + t).marks & FENCED)) {
      machine::report("missing-fence", "wgmma at {0}: no wgmma fence since the last wait orders the registers");
      return;
    }
  }
  for (uint64_t d : {o.a ? o.descriptor_b : o.descriptor_a, o.descriptor_b})
    if (d >> 49 & 7) machine::report("unsupported", "wgmma at {0}: a descriptor with a base offset is not emulated");
}

void run_wgmma(Group& g) {
  check(g);
  const Operands& o = g.of<Operands>(0);
  auto m = std::make_unique<Multiply>();
  m->o = o;
  m->block = machine::here->rank;
  if (o.a) take_fragment(g, *m);
  std::vector<char*> places;
  for (unsigned t = 0; t < GROUP; ++t) places.push_back((char*)g.of<Operands>(t).d);
  m->registers = machine::hold_registers(g, places, (size_t)(o.n / 2 * bits(o.td) / 8));
  machine::submit(machine::Queue::matrix, std::move(m), GROUP, "wgmma", machine::Proxy::async);
}
}  // namespace

void wgmma(int n, int k, Type td, Type ta, Type tb, bool at, bool bt, void* d, const uint32_t* a, uint64_t da, uint64_t db, int scale_d) {
  Operands o = {n, k, td, ta, tb, at, bt, d, a, da, db, scale_d};
  machine::block_collective("wgmma", GROUP, &o, run_wgmma);
}

void wgmma_fence() { machine::here->marks |= FENCED; }

void wgmma_commit() {
  machine::block_collective("wgmma.commit_group", GROUP, nullptr, [](Group& g) { machine::commit(machine::Queue::matrix, g.first); });
}

void wgmma_wait(unsigned left) {
  machine::block_collective("wgmma.wait_group", GROUP, &left, [](Group& g) {
    machine::wait_group(machine::Queue::matrix, g.first, GROUP, g.of<unsigned>(0));
    for (unsigned t = 0; t < GROUP; ++t) machine::thread_at(g.first + t).marks &= ~FENCED;
  });
}

uint64_t descriptor(uint32_t address, uint32_t leading, uint32_t stride, uint32_t swizzle) {
  if (address % 16 || leading % 16 || stride % 16) machine::report("bad-operand", "a matrix descriptor at {0} needs multiples of 16 bytes");
  const uint64_t code = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
  return (uint64_t)((address & 0x3ffff) >> 4) | (uint64_t)(leading >> 4 & 0x3fff) << 16 | (uint64_t)(stride >> 4 & 0x3fff) << 32 | code << 62;
}

}  // namespace cuda
