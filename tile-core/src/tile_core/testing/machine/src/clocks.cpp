// Who has seen what: vector clocks over threads and engines, with a second clock for what proxy fences have let through.
#include "state.h"

namespace machine {

u32 agents;

namespace {
u32 clock_now;
u32 capacity;
std::vector<u32> seen_store, passed_store;

void highest(u32* into, const u32* from, u32 n) {
  for (u32 i = 0; i < n; ++i) into[i] = into[i] > from[i] ? into[i] : from[i];
}

void lowest(u32* into, const u32* from, u32 n) {
  for (u32 i = 0; i < n; ++i) into[i] = into[i] < from[i] ? into[i] : from[i];
}
}  // namespace

u32 now() { return ++clock_now; }

u32 new_agent() {
  if (agents == capacity) {           // rare: later engines share the last place, which only loses reports
    return capacity - 1;
  }
  return agents++;
}

void start_clocks(unsigned threads) {
  if (capacity != threads * 3 + 128 || seen_store.empty()) {
    capacity = threads * 3 + 128;
    seen_store.assign((size_t)threads * capacity, 0);
    passed_store.assign((size_t)threads * capacity, 0);
  } else {
    for (unsigned i = 0; i < threads; ++i) {
      memset(&seen_store[(size_t)i * capacity], 0, agents * sizeof(u32));
      memset(&passed_store[(size_t)i * capacity], 0, agents * sizeof(u32));
    }
  }
  agents = threads;
  for (unsigned i = 0; i < threads; ++i) {
    fibers[i].seen = &seen_store[(size_t)i * capacity];
    fibers[i].passed = &passed_store[(size_t)i * capacity];
    fibers[i].seen[i] = now();
  }
}

void Clock::clear() {
  seen.clear();
  passed.clear();
}

void Clock::join(const Fiber& fiber) {
  if (seen.size() < agents) seen.resize(agents), passed.resize(agents);
  highest(seen.data(), fiber.seen, agents);
  highest(passed.data(), fiber.passed, agents);
}

void Clock::join(const Clock& other) {
  const u32 n = (u32)other.seen.size();
  if (seen.size() < n) seen.resize(n), passed.resize(n);
  highest(seen.data(), other.seen.data(), n);
  highest(passed.data(), other.passed.data(), n);
}

void Clock::raise(u32 agent, u32 clock) {
  if (seen.size() < agents) seen.resize(agents), passed.resize(agents);
  if (seen[agent] < clock) seen[agent] = clock;
}

void acquire(Fiber& fiber, const Clock& clock) {
  const u32 n = (u32)clock.seen.size();
  highest(fiber.seen, clock.seen.data(), n);
  highest(fiber.passed, clock.passed.data(), n);
  fiber.snapshot.reset();
}

void raise(Fiber& fiber, u32 agent, u32 clock) {
  if (fiber.seen[agent] < clock) fiber.seen[agent] = clock;
  fiber.snapshot.reset();
}

void advance(Fiber& fiber) {
  fiber.seen[fiber.index] = now();
  fiber.snapshot.reset();
}

void proxy_fence() {
  Fiber& me = self();
  highest(me.passed, me.seen, agents);
  advance(me);                        // what follows the fence has not passed it
}

std::shared_ptr<const Snapshot> snapshot(Fiber& fiber) {
  if (!fiber.snapshot)
    fiber.snapshot = std::make_shared<Snapshot>(
        Snapshot{std::vector<u32>(fiber.seen, fiber.seen + agents), std::vector<u32>(fiber.passed, fiber.passed + agents)});
  return fiber.snapshot;
}

// A group's instruction is issued subgroup by subgroup: it is after only what each of them has seen.
std::shared_ptr<const Snapshot> common(unsigned first, unsigned members) {
  auto out = std::make_shared<Snapshot>();
  for (unsigned base = 0; base < members; base += launch.subgroup) {
    std::vector<u32> seen(agents), passed(agents);
    for (unsigned i = base; i < base + launch.subgroup && i < members; ++i) {
      highest(seen.data(), fibers[first + i].seen, agents);
      highest(passed.data(), fibers[first + i].passed, agents);
    }
    if (base == 0) {
      out->seen = seen;
      out->passed = passed;
    } else {
      lowest(out->seen.data(), seen.data(), agents);
      lowest(out->passed.data(), passed.data(), agents);
    }
  }
  return out;
}

Actor actor_of(const Thread& thread) {
  const Fiber& f = fibers[thread.index];
  return Actor{f.index, f.seen[f.index], line_site(f), f.seen, f.passed, agents, Proxy::generic, false, f.index};
}

// ---- memory that threads synchronise through
namespace {
std::unordered_map<u64, Clock> flags;
}

void release_at(const void* pointer) {
  flags[(u64)pointer].join(self());
  advance(self());
  ++progress;
}

void acquire_at(const void* pointer) {
  if (!in_shared(pointer)) see_other_clusters();
  auto found = flags.find((u64)pointer);
  if (found != flags.end()) acquire(self(), found->second);
}

void clear_clocks() { flags.clear(); }

}  // namespace machine
