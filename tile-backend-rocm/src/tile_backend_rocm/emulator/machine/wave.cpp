// Exchanges between the lanes of a wave. MI300 ISA, "Data parallel primitives", "DS_SWIZZLE_B32", "DS_BPERMUTE_B32".
#include "hip_host.h"
#include "operations.h"

namespace hip {

using machine::Group;

const u32 zero_words[4] = {0, 0, 0, 0};

namespace {
const uint64_t WHOLE = ~0ull;

struct Exchange {
  u32 value, result, from;
};

// Every lane takes the value of the lane it names.
u32 exchange(const char* what, u32 value, u32 from) {
  Exchange e = {value, 0, from};
  machine::subgroup_collective(what, WHOLE, &e, [](Group& g) {
    for (unsigned i = 0; i < g.count; ++i) {
      if (!g.has(i)) continue;
      Exchange& mine = g.of<Exchange>(i);
      if (mine.from >= g.count || !g.has(mine.from)) {
        machine::report("divergent-collective", "lane %u reads lane %u at {0}, which takes no part", i, mine.from);
        continue;
      }
      mine.result = g.of<Exchange>(mine.from).value;
    }
  });
  return e.result;
}
}  // namespace

// Controls of GFX9, GFX11 and GFX12 alike: 0x00-0xff quad_perm, 0x121-0x12f row_ror, 0x140 row_mirror, 0x141 row_half_mirror.
u32 dpp(u32 value, int control) {
  const u32 lane = machine::here->lane, row = lane & ~15u, in = lane & 15;
  u32 from = lane;
  if (control <= 0xff) from = (lane & ~3u) | (control >> 2 * (lane & 3) & 3);
  else if (control > 0x120 && control < 0x130) from = row | ((in - (control - 0x120)) & 15);
  else if (control == 0x140) from = row | (15 - in);
  else if (control == 0x141) from = row | (in & 8) | (7 - (in & 7));
  else machine::report("unsupported", "the DPP control 0x%x at {0} is not emulated", control);
  return exchange("a DPP move", value, from);
}

// Bit mode: of the five low bits of the lane's number, ((n & and) | or) ^ xor.
u32 swizzle(u32 value, int pattern) {
  const u32 lane = machine::here->lane, n = lane & 31;
  if (pattern & 0x8000) machine::report("unsupported", "the swizzle pattern 0x%x at {0} is not emulated", pattern);
  const u32 from = ((n & (pattern & 31)) | (pattern >> 5 & 31)) ^ (pattern >> 10 & 31);
  return exchange("ds_swizzle", value, (lane & ~31u) | from);
}

u32 gather(u32 value, u32 byte_of_lane) {
  return exchange("ds_bpermute", value, byte_of_lane >> 2 & (machine::here->subgroup_size - 1));
}

}  // namespace hip
