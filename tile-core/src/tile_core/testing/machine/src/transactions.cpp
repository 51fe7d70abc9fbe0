// Transaction barriers: a phase ends when its arrivals have come and its bytes have landed; threads wait by parity.
#include "state.h"

namespace machine {

namespace {
struct Transaction {
  i64 pending = 0, count = 0, bytes = 0;
  u32 phase = 0;
  unsigned maker = 0;                 // index of the thread that initialised it
  u32 made = 0, site = 0;
  bool fenced = false;                // its initialisation is visible to the asynchronous proxy and to the cluster
  Clock clock, done;
  std::vector<std::pair<unsigned, u32>> waiting;   // thread, parity
};
std::unordered_map<u32, Transaction> transactions;
const i64 MOST_ARRIVALS = (1 << 20) - 1, MOST_BYTES = (1 << 20) - 1;

std::string named(u32 address) {
  char text[64];
  snprintf(text, sizeof text, "barrier at byte %u", address & 0xffffff);
  return address >> 24 ? std::string(text) + " of block " + std::to_string(address >> 24) + " of the cluster" : text;
}

Transaction& find(u32 address, const Actor& actor) {
  if (address % 8) {
    report_at("misaligned", actor.site, 0, named(address) + " at {0} is not aligned to 8 bytes");
    stop();
  }
  auto found = transactions.find(address);
  if (found == transactions.end()) {
    report_at("phase-misuse", actor.site, 0, named(address) + " is used at {0} but was not initialised");
    stop();
  }
  Transaction& t = found->second;
  if (rank_ended(address >> 24)) {
    report_at("exited-block", actor.site, t.site, named(address) + " is used at {0} after that block has ended");
  }
  touch_far(actor, address >> 24);
  if (actor.agent != t.maker && !(t.maker < actor.width && actor.seen[t.maker] >= t.made))
    report_at("race", actor.site, t.site, named(address) + " is used at {0} by " + thread_text(actor.thread) +
                                              ", and no barrier orders that after its initialisation at {1}");
  return t;
}

void step(u32 address, Transaction& t, u32 site) {
  if (t.pending < 0) {
    report_at("phase-misuse", site, t.site, named(address) + " gets more arrivals in a phase, the last at {0}, than it was made for at {1} (" + std::to_string(t.count) + ")");
    stop();
  }
  if (t.bytes > MOST_BYTES || t.bytes < -MOST_BYTES)
    report_at("phase-misuse", site, t.site, named(address) + " expects more bytes at {0} than a barrier can count (" + std::to_string(t.bytes) + ")");
  ++progress;
  if (t.pending || t.bytes) return;
  t.pending = t.count;
  ++t.phase;
  t.done.join(t.clock);
  t.clock.clear();
  auto waiting = std::move(t.waiting);
  t.waiting.clear();
  for (auto& [index, parity] : waiting) {
    if ((t.phase & 1) == parity) { t.waiting.push_back({index, parity}); continue; }
    acquire(fibers[index], t.done);
    wake(fibers[index]);
  }
}
}  // namespace

void start_transactions() { transactions.clear(); }

std::string transaction_text(u32 address) {
  auto found = transactions.find(address);
  if (found == transactions.end()) return named(address);
  const Transaction& t = found->second;
  return named(address) + " (phase " + std::to_string(t.phase) + " lacks " + std::to_string(t.pending) + " of " + std::to_string(t.count) +
         " arrivals and " + std::to_string(t.bytes) + " bytes)";
}

void barrier_init(u32 address, unsigned arrivals) {
  if (address % 8) report("misaligned", "%s at {0} is not aligned to 8 bytes", named(address).c_str());
  if (arrivals == 0 || arrivals > MOST_ARRIVALS) report("bad-operand", "%s is made at {0} for %u arrivals", named(address).c_str(), arrivals);
  auto found = transactions.find(address);
  if (found != transactions.end()) {
    report_at("phase-misuse", line_site(*here), found->second.site, named(address) + " is initialised at {0} while it is live since {1}");
    mark_barrier(address, false);
  }
  const u64 zero = 0;
  write(shared_pointer(address), &zero, 8);
  mark_barrier(address, true);
  Transaction t;
  t.pending = t.count = arrivals;
  t.maker = here->index;
  t.made = self().seen[here->index];
  t.site = line_site(*here);
  transactions[address] = t;
}

void barrier_invalidate(u32 address) {
  find(address, actor_of(*here));
  transactions.erase(address);
  mark_barrier(address, false);
}

void barrier_fence_init() {
  for (auto& [address, t] : transactions)
    if (t.maker == here->index) t.fenced = true;
}

void barrier_arrive(u32 address, unsigned arrivals, i64 bytes) {
  Transaction& t = find(address, actor_of(*here));
  if (address >> 24 != here->rank) check_visible(actor_of(*here), address);
  t.clock.join(self());
  t.bytes += bytes;
  t.pending -= arrivals;
  advance(self());
  step(address, t, line_site(*here));
}

void barrier_expect(u32 address, i64 bytes) {
  Transaction& t = find(address, actor_of(*here));
  t.bytes += bytes;
  step(address, t, line_site(*here));
}

void check_visible(const Actor& actor, u32 address) {
  Transaction& t = find(address, actor);
  const bool passed = t.maker < actor.width && actor.passed[t.maker] >= t.made;
  if (!t.fenced && !passed)
    report_at("missing-fence", actor.site, t.site, named(address) + " is used at {0} by an asynchronous operation or another block, without a fence after its initialisation at {1}");
}

void complete(const Operation& operation, u32 address, i64 bytes) {
  Transaction& t = find(address, operation.actor);
  t.clock.raise(operation.actor.agent, operation.actor.clock);
  t.bytes -= bytes;
  step(address, t, operation.actor.site);
}

void arrive_for(const Actor& actor, u32 address, const Clock& clock) {
  Transaction& t = find(address, actor);
  t.clock.join(clock);
  --t.pending;
  step(address, t, actor.site);
}

bool barrier_test(u32 address, unsigned parity) {
  Transaction& t = find(address, actor_of(*here));
  if (parity > 1) report("bad-operand", "%s is waited for at {0} with parity %u", named(address).c_str(), parity);
  if ((t.phase & 1) == parity) return false;
  acquire(self(), t.done);
  return true;
}

void barrier_wait(u32 address, unsigned parity) {
  if (barrier_test(address, parity)) return;
  find(address, actor_of(*here)).waiting.push_back({here->index, parity});
  block_here({Waiting::transaction, "a transaction barrier", address, parity});
}

}  // namespace machine
