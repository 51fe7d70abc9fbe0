// Barriers of a block by number, with a count, and the barrier of a cluster with separate arrive and wait.
#include "state.h"

namespace machine {

namespace {
struct Barrier {
  unsigned expected = 0, arrived = 0;
  bool whole = false;                 // the barrier of all threads of the block
  Clock clock;
  std::vector<unsigned> waiting, came;   // indices
};
const unsigned NUMBERS = 16;
std::vector<Barrier> barriers;        // rank * NUMBERS + number

struct ClusterBarrier {
  unsigned arrived = 0;
  u64 generation = 0;
  Clock clock, done;
  std::vector<unsigned> waiting;
  std::vector<u64> came;              // by thread: generations arrived at
} cluster_barrier;

Barrier& barrier(unsigned id) {
  if (id >= NUMBERS) {
    report("bad-operand", "barrier %u at {0}: a block has barriers 0 to %u", id, NUMBERS - 1);
    stop();
  }
  return barriers[here->rank * NUMBERS + id];
}

void check_subgroup(const Barrier& b, unsigned id) {
  for (unsigned other : b.waiting) {
    const Fiber& f = fibers[other];
    if (f.subgroup == here->subgroup && f.line != here->line && other != here->index) {
      report_at("divergent-barrier", line_site(*here), line_site(f),
                "barrier " + std::to_string(id) + " is reached by " + thread_text(here->index) + " at {0} and by " + thread_text(other) +
                    " of the same subgroup at {1}: all of a subgroup must reach the same one");
      return;
    }
  }
}

bool arrive(unsigned id, unsigned threads, bool whole) {
  Barrier& b = barrier(id);
  if (b.arrived && (b.expected != threads)) {
    report("phase-misuse", "barrier %u at {0} expects %u threads here, but earlier arrivals of this phase expect %u", id, threads, b.expected);
    stop();
  }
  b.expected = threads;
  b.whole = whole;
  b.clock.join(self());
  b.came.push_back(here->index);
  ++progress;
  if (++b.arrived < threads) return false;
  for (unsigned i : b.waiting) {
    acquire(fibers[i], b.clock);
    advance(fibers[i]);
    wake(fibers[i]);
  }
  return true;
}

void reset(Barrier& b) {
  b.arrived = 0;
  b.clock.clear();
  b.waiting.clear();
  b.came.clear();
}

void sync(unsigned id, unsigned threads, bool whole) {
  Barrier& b = barrier(id);
  check_subgroup(b, id);
  if (arrive(id, threads, whole)) {
    acquire(self(), b.clock);
    advance(self());
    reset(b);
    return;
  }
  b.waiting.push_back(here->index);
  block_here({Waiting::barrier, whole ? "the block's barrier" : "a named barrier", id, threads});
}

void check_threads(unsigned id, unsigned threads) {
  if (threads == 0 || threads % launch.subgroup || threads > (block_size() + launch.subgroup - 1) / launch.subgroup * launch.subgroup) {
    report("bad-operand", "barrier %u at {0} is given %u threads: a multiple of %u up to the block's size is needed", id, threads, launch.subgroup);
    stop();
  }
}
}  // namespace

void start_barriers(unsigned ranks) {
  barriers.assign(ranks * NUMBERS, Barrier());
  cluster_barrier = ClusterBarrier();
  cluster_barrier.came.assign(fibers.size(), 0);
}

void block_barrier() { sync(0, block_size(), true); }

void named_sync(unsigned id, unsigned threads) {
  check_threads(id, threads);
  sync(id, threads, false);
}

void named_arrive(unsigned id, unsigned threads) {
  check_threads(id, threads);
  if (arrive(id, threads, false)) reset(barrier(id));
  advance(self());
}

void cluster_arrive(bool release) {
  ClusterBarrier& c = cluster_barrier;
  if (c.came[here->index] > c.generation) {
    report("phase-misuse", "the cluster's barrier at {0} is arrived at twice by %s without a wait between", thread_text(here->index).c_str());
    stop();
  }
  ++c.came[here->index];
  if (release) c.clock.join(self());
  advance(self());
  ++progress;
  if (++c.arrived < fibers.size()) return;
  c.done.join(c.clock);
  c.clock.clear();
  c.arrived = 0;
  ++c.generation;
  for (unsigned i : c.waiting) wake(fibers[i]);
  c.waiting.clear();
}

void cluster_wait(bool acquires) {
  ClusterBarrier& c = cluster_barrier;
  const u64 mine = c.came[here->index];
  if (mine == 0) report("phase-misuse", "the cluster's barrier at {0} is waited for before any arrival of this thread");
  while (c.generation < mine) {
    c.waiting.push_back(here->index);
    block_here({Waiting::cluster, "the cluster's barrier", 0, 0});
  }
  if (acquires) acquire(self(), c.done);
}

void finish_barriers() {
  for (size_t i = 0; i < barriers.size(); ++i)
    if (barriers[i].arrived)
      report_at("phase-misuse", line_site(fibers[barriers[i].came[0]]), 0,
                "barrier " + std::to_string(i % NUMBERS) + " of a block that has ended still holds " + std::to_string(barriers[i].arrived) + " arrivals (the first at {0})");
}

// At a deadlock: a barrier of the whole block that some threads will never reach.
bool explain_barriers() {
  bool any = false;
  for (size_t i = 0; i < barriers.size(); ++i) {
    const Barrier& b = barriers[i];
    if (!b.whole || b.waiting.empty()) continue;
    const unsigned rank = (unsigned)(i / NUMBERS), n = block_size();
    std::vector<unsigned> waiting, missing;
    u32 other = 0;
    bool elsewhere = false;
    for (unsigned t = 0; t < n; ++t) {
      const Fiber& f = fibers[rank * n + t];
      const bool here_too = f.state == State::blocked && f.waiting.kind == Waiting::barrier && f.waiting.object == 0;
      (here_too ? waiting : missing).push_back(t);
      if (here_too) continue;
      other = line_site(f);
      elsewhere |= f.state == State::done || f.waiting.kind == Waiting::barrier;
    }
    if (!elsewhere) continue;
    report_at("divergent-barrier", line_site(fibers[b.waiting[0]]), other,
              threads_text(waiting) + " wait for the whole block at {0}, which " + threads_text(missing) + " never reach (last seen at {1})");
    any = true;
  }
  return any;
}

namespace {
std::string purpose(const Waiting& w) {
  switch (w.kind) {
    case Waiting::barrier: {
      const std::string count = std::to_string(w.detail);
      return std::string(w.what) + " " + std::to_string(w.object) + " of " + count + " threads";
    }
    case Waiting::transaction: return transaction_text(w.object) + ", parity " + std::to_string(w.detail);
    default: return w.what;
  }
}
}  // namespace

void deadlock() {
  bool explained = explain_collectives();
  explained |= explain_barriers();
  std::map<std::pair<std::string, int>, std::vector<unsigned>> groups;
  for (const Fiber& f : fibers)
    if (f.state == State::blocked || f.state == State::polling)
      groups[{(f.ranks > 1 ? "block " + std::to_string(f.rank) + ": " : "") + purpose(f.waiting), f.line}].push_back(f.number);
  if (!explained || groups.size() > 1)
    for (auto& [key, who] : groups)
      if (!explained || key.first.find("barrier at") != std::string::npos)
        report_at("deadlock", (u32)key.second, 0, threads_text(who) + " wait at {0} for " + key.first + ", and nothing is left that could end it");
  stop();
}

}  // namespace machine
