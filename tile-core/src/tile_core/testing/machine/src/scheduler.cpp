// Which thread runs next: they give way only where they wait, in an order that the mode makes kind, unkind or random.
#include <sys/mman.h>

#include "state.h"
#include "switch.h"

namespace machine {

Launch launch;
Thread* here;
std::vector<Fiber> fibers;
u64 progress;
bool stopped;

namespace {
const size_t STACK = 256 << 10;
const u64 PATIENCE = 2000;            // rounds of polling without progress
std::vector<u64> ready;               // a bit for each thread
unsigned finished;
void* main_stack;
char* stacks;
unsigned stack_count;
u64 random_state;
const Argument* kernel_arguments;
void (*kernel_entry)(const Argument*);
u64 idle_rounds;

void set_ready(unsigned i, bool on) {
  if (on) ready[i / 64] |= 1ull << (i % 64);
  else ready[i / 64] &= ~(1ull << (i % 64));
}

int next_up(unsigned from) {          // the first ready thread at or after `from`, cyclically
  const unsigned words = (unsigned)ready.size();
  for (unsigned k = 0; k <= words; ++k) {
    const unsigned w = (from / 64 + k) % words;
    u64 bits = ready[w];
    if (k == 0) bits &= ~0ull << (from % 64);
    if (bits) return (int)(w * 64 + (unsigned)__builtin_ctzll(bits));
  }
  return -1;
}

int next_down(unsigned from) {
  const unsigned words = (unsigned)ready.size();
  for (unsigned k = 0; k <= words; ++k) {
    const unsigned w = (from / 64 + words - k % words) % words;
    u64 bits = ready[w];
    if (k == 0) bits &= ~0ull >> (63 - from % 64);
    if (bits) return (int)(w * 64 + 63 - (unsigned)__builtin_clzll(bits));
  }
  return -1;
}

int pick() {
  const unsigned n = (unsigned)fibers.size(), me = here->index;
  switch (launch.mode) {
    case Mode::early: return next_up((me + 1) % n);
    case Mode::late: return next_down((me + n - 1) % n);
    default: return next_up(random_number() % 4 ? (me + 1) % n : random_number() % n);
  }
}

void switch_to(unsigned index) {
  Fiber& from = self();
  here = &fibers[index];
  machine_switch(&from.stack_pointer, fibers[index].stack_pointer);
}

[[noreturn]] void to_main() {
  void* unused;
  machine_switch(&unused, main_stack);
  __builtin_unreachable();
}

bool wake_pollers() {                 // false: none polls, or nothing has changed for long
  static u64 seen;
  idle_rounds = progress == seen ? idle_rounds + 1 : 0;
  seen = progress;
  if (idle_rounds >= PATIENCE) return false;
  bool any = false;
  for (Fiber& f : fibers)
    if (f.state == State::polling) {
      any = true;
      wake(f);
    }
  return any;
}

void schedule() {                     // returns when the caller is ready and its turn has come
  settle_writes();
  for (;;) {
    perform_by_chance();
    const int next = pick();
    if (next >= 0) {
      if ((unsigned)next != here->index) switch_to((unsigned)next);
      return;
    }
    if (finished == fibers.size()) to_main();
    if (perform_something() || wake_pollers()) continue;
    deadlock();
  }
}

void fiber_main() {
  kernel_entry(kernel_arguments);
  Fiber& me = self();
  me.state = State::done;
  set_ready(me.index, false);
  ++finished;
  ++progress;
  if (rank_ended(me.rank)) depart(me.rank);
  schedule();
  abort();
}

void make_stacks(unsigned n) {
  if (n <= stack_count) return;
  stacks = (char*)mmap(nullptr, STACK * n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  for (unsigned i = 0; i < n; ++i) mprotect(stacks + STACK * i, 4096, PROT_NONE);
  stack_count = n;
}
}  // namespace

Mode mode() { return launch.mode; }
void at(int line) { here->line = line; }

uint32_t random_number() {
  random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
  return (u32)(random_state >> 33);
}

Fiber& self() { return *(Fiber*)here; }
Thread& thread_at(unsigned index) { return fibers[index]; }
unsigned block_size() { return launch.block.x * launch.block.y * launch.block.z; }

void block_here(const Waiting& waiting) {
  Fiber& me = self();
  me.state = State::blocked;
  me.waiting = waiting;
  set_ready(me.index, false);
  while (me.state == State::blocked) schedule();
  me.waiting = Waiting();
}

void wake(Fiber& fiber) {
  fiber.state = State::ready;
  set_ready(fiber.index, true);
}

void poll() {
  Fiber& me = self();
  me.state = State::polling;
  me.waiting.kind = Waiting::memory;
  me.waiting.what = "memory to change";
  set_ready(me.index, false);
  while (me.state == State::polling) schedule();
  me.waiting = Waiting();
}

bool rank_ended(unsigned rank) {
  const unsigned n = block_size();
  for (unsigned i = 0; i < n; ++i)
    if (fibers[rank * n + i].state != State::done) return false;
  return true;
}

void stop() {
  stopped = true;
  to_main();
}

bool in_stack(const void* pointer) { return (u64)((char*)pointer - stacks) < STACK * stack_count; }

void run_cluster(const Argument* arguments, void (*entry)(const Argument*)) {
  const unsigned n = block_size(), ranks = launch.cluster.x * launch.cluster.y * launch.cluster.z;
  kernel_arguments = arguments;
  kernel_entry = entry;
  make_stacks(n * ranks);
  ready.assign((n * ranks + 63) / 64, 0);
  finished = 0;
  start_departures(ranks);
  idle_rounds = 0;
  static bool seeded;
  if (!seeded) random_state = launch.seed * 2654435761u + 12345, seeded = true;
  for (Fiber& f : fibers) {
    f.state = State::ready;
    f.waiting = Waiting();
    f.line = 0;
    f.held.clear();
    f.snapshot.reset();
    f.stack = stacks + STACK * f.index;
    f.stack_pointer = prepare(f.stack, STACK, fiber_main);
    set_ready(f.index, true);
  }
  unsigned first = launch.mode == Mode::late ? n * ranks - 1 : 0;
  here = &fibers[first];
  machine_switch(&main_stack, fibers[first].stack_pointer);
}

}  // namespace machine
