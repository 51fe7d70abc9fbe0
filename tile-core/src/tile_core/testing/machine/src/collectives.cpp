// Collectives: each lane leaves its operands and waits; the last one works for all and wakes them.
#include "state.h"

namespace machine {

namespace {
struct Meeting {
  Group group;
  const char* what;
  unsigned arrived, expected;
  int line;
  std::vector<unsigned> waiting;
};
// by index of the group's first thread and its size; a subgroup may hold several with disjoint lanes
std::map<std::pair<unsigned, unsigned>, std::vector<std::unique_ptr<Meeting>>> meetings;

bool matches(const Meeting& m, const char* what, u64 lanes, int line) {
  return m.group.lanes == lanes && m.line == line && !strcmp(m.what, what);
}

bool takes_part(const Meeting& m, unsigned lane) { return m.group.count > 64 || (m.group.lanes >> lane & 1); }

[[noreturn]] void diverged(const Meeting& m, const char* what) {
  report_at("divergent-collective", line_site(*here), (u32)m.line,
            thread_text(here->index) + " comes to " + what + " at {0} while " + threads_text(m.waiting) + " of its group wait in " + m.what + " at {1}");
  stop();
}

Meeting& meeting(unsigned first, unsigned count, const char* what, u64 lanes) {
  auto& open = meetings[{first, count}];
  const unsigned lane = here->index - first;
  for (auto& m : open) {
    if (matches(*m, what, lanes, here->line)) return *m;
    if ((count > 64 || (m->group.lanes & lanes)) && takes_part(*m, lane)) diverged(*m, what);
  }
  auto fresh = std::make_unique<Meeting>();
  fresh->group.first = first;
  fresh->group.count = count;
  fresh->group.lanes = lanes;
  memset(fresh->group.operands, 0, sizeof fresh->group.operands);
  fresh->what = what;
  fresh->line = here->line;
  fresh->arrived = 0;
  fresh->expected = count > 64 ? count : (unsigned)__builtin_popcountll(lanes);
  open.push_back(std::move(fresh));
  return *open.back();
}

void meet(unsigned first, unsigned count, const char* what, u64 lanes, void* operands, Collective run) {
  Meeting& m = meeting(first, count, what, lanes);
  m.group.operands[here->index - first] = operands;
  if (++m.arrived < m.expected) {
    m.waiting.push_back(here->number);
    block_here({Waiting::collective, what, first, 0});
    return;
  }
  run(m.group);
  ++progress;
  for (unsigned i = 0; i < count; ++i)
    if (m.group.operands[i] && first + i != here->index) wake(fibers[first + i]);
  auto& open = meetings[{first, count}];
  for (size_t i = 0; i < open.size(); ++i)
    if (open[i].get() == &m) { open.erase(open.begin() + (long)i); break; }
}
}  // namespace

void start_collectives() { meetings.clear(); }

void subgroup_collective(const char* what, u64 lanes, void* operands, Collective run) {
  const unsigned size = launch.subgroup, begin = here->number / size * size;
  const unsigned count = block_size() - begin < size ? block_size() - begin : size;
  const u64 exist = count == 64 ? ~0ull : (1ull << count) - 1;
  if (!(lanes >> here->lane & 1)) {
    report("divergent-collective", "%s at {0} is called by lane %u, which its mask 0x%llx does not name", what, here->lane, (unsigned long long)lanes);
    stop();
  }
  static char none;
  meet(here->rank * block_size() + begin, count, what, lanes & exist, operands ? operands : &none, run);
}

void block_collective(const char* what, unsigned size, void* operands, Collective run) {
  const unsigned begin = here->number / size * size;
  if (begin + size > block_size()) {
    report("divergent-collective", "%s at {0} needs %u threads, but the block ends at thread %u", what, size, block_size());
    stop();
  }
  static char none;
  meet(here->rank * block_size() + begin, size, what, ~0ull, operands ? operands : &none, run);
}

void subgroup_barrier(u64 lanes) {
  subgroup_collective("subgroup barrier", lanes, nullptr, [](Group& g) {
    Clock clock;
    for (unsigned i = 0; i < g.count; ++i)
      if (g.has(i)) clock.join(fibers[g.first + i]);
    for (unsigned i = 0; i < g.count; ++i)
      if (g.has(i)) {
        acquire(fibers[g.first + i], clock);
        advance(fibers[g.first + i]);
      }
  });
}

// At a deadlock: a collective that some lanes wait in and others will never reach.
bool explain_collectives() {
  bool any = false;
  for (auto& [key, open] : meetings)
    for (auto& m : open) {
      std::vector<unsigned> missing;
      u32 other = 0;
      for (unsigned i = 0; i < m->group.count; ++i)
        if (takes_part(*m, i) && !m->group.has(i)) {
          missing.push_back(fibers[key.first + i].number);
          other = line_site(fibers[key.first + i]);
        }
      report_at("divergent-collective", (u32)m->line, other,
                threads_text(m->waiting) + " wait in " + m->what + " at {0}, which " + threads_text(missing) + " never reach (last seen at {1})");
      any = true;
    }
  return any;
}

}  // namespace machine
