// Asynchronous operations: what is in flight, when it is performed, and who has waited for it.
#include <algorithm>

#include "state.h"

namespace machine {

void arrive_for(const Actor& actor, u32 address, const Clock& clock);

namespace {
struct Engine {
  Queue queue;
  unsigned owner, members;
  u32 agent;
  u32 offset = 0;                     // a group's clock is its number plus this; every commit takes a tick, so clocks stay behind now()
  u32 committed = 0;                  // groups so far
  Clock before;                       // what came before the operations whose arrivals pass it on
  std::vector<std::pair<u32, Pending>> operations;   // with their group; in order, those not yet waited for
};
std::map<std::pair<u8, unsigned>, Engine> engines;
std::vector<Pending> transactions_pending;
const unsigned SLOTS = 64;
std::vector<u32> slots;               // agents that operations with a barrier take turns on
unsigned next_slot;

Engine& engine(Queue queue, unsigned owner, unsigned members) {
  auto [it, fresh] = engines.try_emplace({(u8)queue, owner});
  if (fresh) {
    it->second.queue = queue;
    it->second.owner = owner;
    it->second.members = members;
    it->second.agent = new_agent();
    it->second.offset = now();
  }
  return it->second;
}

void prepare_operation(Operation& o, unsigned owner, u32 agent, u32 clock, const char* what, Proxy proxy) {
  o.owner = owner;
  o.what = what;
  o.actor = Actor{agent, clock, line_site(*here), o.clocks->seen.data(), o.clocks->passed.data(), (u32)o.clocks->seen.size(), proxy, false, here->index};
}

void perform(Operation& o) {
  if (o.done) return;
  o.done = true;
  o.perform();
  ++progress;
}

// Performs and forgets the operations of groups up to `last`; their memory stays marked with the group.
void finish_through(Engine& e, u32 last) {
  size_t n = 0;
  while (n < e.operations.size() && e.operations[n].first <= last) {
    Operation& o = *e.operations[n].second;
    perform(o);
    if (e.queue == Queue::matrix) release_registers(*((RegisterOperation&)o).registers, e.owner);
    ++n;
  }
  e.operations.erase(e.operations.begin(), e.operations.begin() + (long)n);
}

bool perform_one(Engine& e) {
  for (auto& [group, o] : e.operations)
    if (!o->done) { perform(*o); return true; }
  return false;
}
}  // namespace

void submit(Queue queue, Pending operation, unsigned members, const char* what, Proxy proxy) {
  const unsigned owner = here->index - (members > 1 ? here->number % members : 0);
  Engine& e = engine(queue, owner, members);
  operation->clocks = members > 1 ? common(owner, members) : snapshot(self());
  prepare_operation(*operation, owner, e.agent, e.offset + e.committed + 1, what, proxy);
  e.operations.emplace_back(e.committed + 1, std::move(operation));
  if (launch.mode == Mode::early) perform(*e.operations.back().second);
}

void commit(Queue queue, unsigned owner) {
  ++engine(queue, owner, 1).committed;
  now();
}

namespace {
void wait_through(Engine& e, unsigned owner, unsigned members, u32 last) {
  finish_through(e, last);
  for (unsigned i = 0; i < members; ++i) raise(fibers[owner + i], e.agent, e.offset + last);
}
}  // namespace

void wait_group(Queue queue, unsigned owner, unsigned members, unsigned left) {
  Engine& e = engine(queue, owner, members);
  if (e.committed >= left) wait_through(e, owner, members, e.committed - left);
}

void wait_all(Queue queue, unsigned owner, unsigned members) {
  commit(queue, owner);
  wait_group(queue, owner, members, 0);
}

// ---- operations that complete at a barrier
void submit_transaction(Pending operation, const char* what) {
  if (slots.empty()) {
    for (unsigned i = 0; i < SLOTS; ++i) slots.push_back(new_agent());
  }
  operation->clocks = snapshot(self());
  prepare_operation(*operation, here->index, slots[next_slot++ % SLOTS], now(), what, Proxy::async);
  transactions_pending.push_back(std::move(operation));
  if (launch.mode == Mode::early) {
    Pending o = std::move(transactions_pending.back());
    transactions_pending.pop_back();
    perform(*o);
  }
}

namespace {
struct ArrivalAfter : Operation {
  Engine* engine;
  u32 group;
  u32 barrier;
  bool passes_on;
  Clock clock;                        // what it tells
  void perform() override {
    for (auto& [g, o] : engine->operations)
      if (g <= group) machine::perform(*o);
    if (passes_on) finish_through(*engine, group);
    clock.raise(engine->agent, engine->offset + group);
    arrive_for(actor, barrier, clock);
  }
};
}  // namespace

void after_queue(Queue queue, unsigned owner, u32 barrier, bool passes_on) {
  auto arrival = std::make_unique<ArrivalAfter>();
  arrival->engine = &engine(queue, owner, 1);
  commit(queue, owner);
  arrival->group = arrival->engine->committed;
  arrival->barrier = barrier;
  arrival->passes_on = passes_on;
  if (passes_on) {
    Clock& before = arrival->engine->before;
    for (auto& [g, o] : arrival->engine->operations)
      for (u32 agent = 0; agent < o->clocks->seen.size(); ++agent) before.raise(agent, o->clocks->seen[agent]);
    arrival->clock.join(before);
  }
  submit_transaction(std::move(arrival), "arrival after copies");
}

bool perform_something() {
  if (transactions_pending.empty()) return false;
  size_t i = 0;
  if (launch.mode == Mode::late) i = transactions_pending.size() - 1;
  if (launch.mode == Mode::random) i = random_number() % transactions_pending.size();
  Pending o = std::move(transactions_pending[i]);
  transactions_pending.erase(transactions_pending.begin() + (long)i);
  perform(*o);
  return true;
}

void perform_by_chance() {
  if (launch.mode != Mode::random || random_number() % 8) return;
  if (random_number() % 2 && perform_something()) return;
  if (engines.empty()) return;
  auto it = engines.begin();
  std::advance(it, random_number() % engines.size());
  perform_one(it->second);
}

void start_engines() {
  engines.clear();
  transactions_pending.clear();
  slots.clear();
  next_slot = 0;
}

namespace {
std::vector<void (*)()>& endings() {
  static std::vector<void (*)()> list;
  return list;
}
}  // namespace

void when_blocks_end(void (*run)()) {
  if (std::find(endings().begin(), endings().end(), run) == endings().end()) endings().push_back(run);
}

void finish_engines() {
  for (auto run : endings()) run();
  for (auto& o : transactions_pending)
    report_at("missing-wait", o->actor.site, 0, std::string(o->what) + ", issued at {0}, is still in flight when its block ends");
  for (auto& [key, e] : engines)
    for (auto& [group, o] : e.operations) {
      if (e.queue != Queue::copy)
        report_at("missing-wait", o->actor.site, 0, std::string(o->what) + ", issued at {0}, was not waited for when its block ended");
    }
  start_engines();
}

// ---- registers
namespace {
const char POISON[4] = {(char)0xad, (char)0xde, (char)0xff, 0x7f};   // not a number
}

std::shared_ptr<Registers> hold_registers(const Group& group, const std::vector<char*>& places, size_t bytes) {
  for (auto& r : fibers[group.first].held)
    if (r->places == places && r->bytes == bytes) { ++r->pending; return r; }
  auto r = std::make_shared<Registers>();
  r->places = places;
  r->bytes = bytes;
  r->pending = 1;
  if (launch.mode != Mode::early)
    for (char* p : places) {
      r->values.emplace_back(p, p + bytes);
      for (size_t i = 0; i < bytes; ++i) p[i] = POISON[i % 4];
    }
  for (unsigned i = 0; i < group.count; ++i) fibers[group.first + i].held.push_back(r);
  return r;
}

void release_registers(Registers& r, unsigned first) {
  if (--r.pending) return;
  for (size_t t = 0; t < r.places.size(); ++t) {
    auto& held = fibers[first + t].held;
    held.erase(std::remove_if(held.begin(), held.end(), [&](auto& h) { return h.get() == &r; }), held.end());
    if (!r.values.empty()) memcpy(r.places[t], r.values[t].data(), r.bytes);
  }
}

void check_registers(const void* pointer, size_t bytes, bool writes, u32 site) {
  const char* p = (const char*)pointer;
  for (auto& r : self().held) {
    const unsigned lane = here->index % (unsigned)r->places.size();
    const char* place = r->places[lane];
    if (p < place + r->bytes && p + bytes > place) {
      report_at("missing-wait", site, 0, std::string("a register that a matrix operation in flight writes is ") + (writes ? "written" : "read") + " at {0} by " + thread_text(here->index));
      return;
    }
  }
}

}  // namespace machine
