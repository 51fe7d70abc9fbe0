// Blocks of a cluster that end: what other blocks do in a block's memory must be ordered before its end, not only come first by chance.
#include "state.h"

namespace machine {

namespace {
struct Touch {
  u32 clock, site;
};
std::vector<std::unordered_map<u32, Touch>> touched;   // by rank; the last touch of each agent of another block
}  // namespace

void start_departures(unsigned ranks) { touched.assign(ranks, {}); }

void touch_far(const Actor& actor, unsigned rank) {
  if (rank < touched.size() && actor.thread / block_size() != rank) touched[rank][actor.agent] = {actor.clock, actor.site};
}

void depart(unsigned rank) {
  const unsigned n = block_size();
  for (const auto& [agent, touch] : touched[rank]) {
    u32 seen = 0;
    for (unsigned i = 0; i < n; ++i) seen = std::max(seen, fibers[rank * n + i].seen[agent]);
    if (seen < touch.clock)
      report_at("exited-block", touch.site, 0, "shared memory of block " + std::to_string(rank) + " of the cluster is touched at {0}, and nothing orders that before the end of that block");
  }
}

}  // namespace machine
