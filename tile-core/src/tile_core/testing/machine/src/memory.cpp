// Memory with shadow state: bounds, initialisation, alignment, and for every byte who touched it last and when.
#include <sys/mman.h>

#include <algorithm>

#include "state.h"

namespace machine {

bool global_apart;

namespace {
const u64 WINDOW = 1ull << 24;        // address space of one block's shared memory
const unsigned RANKS = 16;
const u32 START = 1024;               // the first bytes belong to the system, as on the device
const u64 GAP = 1 << 16;              // between buffers
const u64 SHADOWED = 64ull << 20;     // larger buffers have no shadow

struct Access {
  u32 clock, site;
  u16 agent;                          // + 1; 0: none
  Proxy proxy;
  u8 atomic;
};
struct Cell {
  Access write, reads[2];
};

struct Region {                       // a static array or a buffer
  u64 first, bytes;                   // an offset in the window; an address
  bool writable;
  u64 cells;                          // where its cells begin
};

char* shared_base;
Cell* shared_cells;                   // RANKS x cells_per_rank
u64 cells_per_rank;
std::vector<Region> static_arrays;
std::map<int, u64> static_places;
u64 static_end;
unsigned ranks_used;

std::vector<Region> buffers;          // by address
Cell* buffer_cells;
u64 buffers_first, buffers_end;
u32 cluster_floor;                    // accesses up to this clock are of earlier blocks
bool synchronised;                    // this cluster has acquired something in global memory

template <class T> T* reserve(u64 count) {
  void* p = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return (T*)p;
}

u64 dynamic_end() { return START + launch.shared_bytes; }

bool seen(const Actor& a, const Access& by) {
  const u32 agent = (u32)by.agent - 1;
  return agent == a.agent || (agent < a.width && a.seen[agent] >= by.clock);
}

bool passed(const Actor& a, const Access& by) {
  const u32 agent = (u32)by.agent - 1;
  return by.proxy == Proxy::async || (agent < a.width && a.passed[agent] >= by.clock);
}

const char* doer(Proxy proxy) {
  switch (proxy) {
    case Proxy::async: return "an asynchronous operation";
    case Proxy::copy: return "an asynchronous copy";
    default: return "a thread";
  }
}

std::string where(const void* pointer) {
  char text[96];
  const u64 a = (u64)pointer;
  if (in_shared(pointer)) {
    snprintf(text, sizeof text, "shared memory at byte %llu", (unsigned long long)(shared_address(pointer) & 0xffffff));
  } else {
    size_t i = 0;
    while (i + 1 < buffers.size() && buffers[i + 1].first <= a) ++i;
    snprintf(text, sizeof text, "buffer %zu at byte %lld", i, buffers.empty() ? 0ll : (long long)(a - buffers[i].first));
  }
  return text;
}

const char* code_of(bool mine, bool theirs, bool writes, bool wrote) {
  if (wrote && theirs) return "missing-wait";
  if (!wrote && (theirs || (mine && writes))) return "overwritten";
  return "race";
}

bool asynchronous(Proxy proxy) { return proxy == Proxy::async || proxy == Proxy::copy; }

// `by` came first in this run; the two are not ordered.
void conflict(const Actor& a, bool writes, const Access& by, bool wrote, const void* pointer) {
  const bool theirs = asynchronous(by.proxy);
  const char* code = code_of(asynchronous(a.proxy), theirs, writes, wrote);
  if (known_fault(code, a.site, by.site)) return;
  const std::string text = where(pointer) + " is " + (writes ? "written" : "read") + " by " + doer(a.proxy) + " (" + thread_text(a.thread) +
                           ") at {0}, and was " + (wrote ? "written" : "read") + " by " + doer(by.proxy) + " at {1}: ";
  const char* why = !theirs ? "no barrier orders the two" : wrote ? "nothing waited for that write to complete" : "nothing waited for that read to complete";
  report_at(code, a.site, by.site, text + why);
}

// Two threads may write the same bytes to one place: one of the writes lands. What a store writes is known after it only.
struct Doubtful {
  Actor actor;
  Access by;
  const char* place;
  char old;
};
std::vector<Doubtful> doubtful;

void not_passed(const Actor& a, bool writes, const Access& by, bool wrote, const void* pointer) {
  if (known_fault("missing-fence", a.site, by.site)) return;
  report_at("missing-fence", a.site, by.site,
            where(pointer) + " is " + (writes ? "written" : "read") + " by an asynchronous operation at {0} after " +
                doer(by.proxy) + (wrote ? " wrote" : " read") + " it at {1}, without a proxy fence between them");
}

bool other_cluster(const Access& by) { return by.clock <= cluster_floor; }

template <bool SHARED> bool before(const Actor& a, const Access& by) {
  if (SHARED || !global_apart) return seen(a, by);
  return (u32)by.agent - 1 == a.agent || passed(a, by);
}

template <bool SHARED> bool ordered(const Actor& a, const Access& by) {
  if (a.atomic && by.atomic) return true;
  return other_cluster(by) ? synchronised : before<SHARED>(a, by);
}

template <bool SHARED> void note_read(const Actor& a, Cell& c, const Access& me) {
  int place = -1;
  for (int i = 0; i < 2 && place < 0; ++i)
    if (c.reads[i].agent == me.agent || !c.reads[i].agent) place = i;
  for (int i = 0; i < 2 && place < 0; ++i)
    if (other_cluster(c.reads[i]) || before<SHARED>(a, c.reads[i])) place = i;
  c.reads[place < 0 ? me.agent & 1 : place] = me;   // a third reader: one of the earlier two is forgotten
}

template <bool SHARED> void touch(const Actor& a, Cell* c, const char* pointer, size_t bytes, bool writes) {
  const Access me = {a.clock, a.site, (u16)(a.agent + 1), a.proxy, a.atomic};
  for (size_t i = 0; i < bytes; ++i) {
    Cell& cell = c[i];
    const Access& w = cell.write;
    if (w.agent) {
      if (w.proxy == Proxy::barrier) {
        report_at("phase-misuse", a.site, w.site, where(pointer + i) + " is touched at {0} but holds a live barrier, made at {1}");
        return;
      }
      if (!ordered<SHARED>(a, w)) {
        if (writes && w.proxy == Proxy::generic && a.proxy == Proxy::generic) doubtful.push_back({a, w, pointer + i, pointer[i]});
        else conflict(a, writes, w, true, pointer + i);
      }
      if (SHARED && a.proxy == Proxy::async && ordered<SHARED>(a, w) && !passed(a, w)) not_passed(a, writes, w, true, pointer + i);
    } else if (SHARED && !writes && !known_fault("uninitialised", a.site, 0)) {
      report_at("uninitialised", a.site, 0, where(pointer + i) + " is read at {0} before anything wrote it (" + thread_text(a.thread) + ")");
    }
    if (writes) {
      for (Access& r : cell.reads) {
        if (!r.agent) continue;
        if (!ordered<SHARED>(a, r)) conflict(a, true, r, false, pointer + i);
        else if (SHARED && a.proxy == Proxy::async && r.proxy == Proxy::generic && !passed(a, r)) not_passed(a, true, r, false, pointer + i);
      }
      cell.write = me;
      cell.reads[0] = cell.reads[1] = Access();
    } else {
      note_read<SHARED>(a, cell, me);
    }
  }
}

bool in_region(const std::vector<Region>& regions, u64 first, u64 bytes, const Region** found) {
  auto it = std::upper_bound(regions.begin(), regions.end(), first, [](u64 v, const Region& r) { return v < r.first; });
  if (it == regions.begin()) return false;
  --it;
  *found = &*it;
  return first + bytes <= it->first + it->bytes;
}

bool shared_access(const Actor& a, const char* p, size_t bytes, bool writes) {
  const u64 at = (u64)(p - shared_base), rank = at / WINDOW, offset = at % WINDOW;
  const Region* region;
  const bool inside = (offset >= START && offset + bytes <= dynamic_end()) || in_region(static_arrays, offset, bytes, &region);
  if (!inside || rank >= ranks_used) {
    report_at("shared-bounds", a.site, 0,
              where(p) + " is " + (writes ? "written" : "read") + " at {0} by " + thread_text(a.thread) + ", outside the " +
                  std::to_string(launch.shared_bytes) + " bytes that start at byte " + std::to_string(START) + " and outside static arrays");
    return false;
  }
  if (rank_ended((unsigned)rank)) {
    report_at("exited-block", a.site, 0, "shared memory of block " + std::to_string(rank) + " of the cluster is touched at {0} after that block has ended");
    return false;
  }
  touch_far(a, (unsigned)rank);
  touch<true>(a, shared_cells + rank * cells_per_rank + offset, p, bytes, writes);
  return true;
}

bool buffer_access(const Actor& a, const char* p, size_t bytes, bool writes) {
  const Region* region = nullptr;
  static const Region* last;
  if (last && (u64)p >= last->first && (u64)p + bytes <= last->first + last->bytes) region = last;
  else if (!in_region(buffers, (u64)p, bytes, &region)) {
    report_at("global-bounds", a.site, 0,
              where(p) + " is " + (writes ? "written" : "read") + " at {0} by " + thread_text(a.thread) + " (" +
                  std::to_string(bytes) + " bytes), but that buffer has " + std::to_string(region ? region->bytes : 0) + " bytes");
    return false;
  }
  last = region;
  if (writes && !region->writable) {
    report_at("global-bounds", a.site, 0, where(p) + " is written at {0}, but that buffer was passed for reading only");
    return false;
  }
  if (region->bytes <= SHADOWED) touch<false>(a, buffer_cells + region->cells + ((u64)p - region->first), p, bytes, writes);
  return true;
}

void misaligned(const Actor& a, const void* p, size_t alignment) {
  report_at("misaligned", a.site, 0, where(p) + " is accessed at {0} by " + thread_text(a.thread) + " but is not aligned to " +
                                         std::to_string(alignment) + " bytes");
}

bool access(const Actor& a, const void* pointer, size_t bytes, bool writes, size_t alignment) {
  const char* p = (const char*)pointer;
  const bool shared = in_shared(p), global = (u64)p >= buffers_first && (u64)p < buffers_end;
  if (!shared && !global) {
    return true;                      // a stack, or a table of the program; a wild address ends in a crash, which is reported
  }
  if (writes) ++progress;
  if (alignment > 1 && (u64)p % alignment) { misaligned(a, p, alignment); return false; }
  return shared ? shared_access(a, p, bytes, writes) : buffer_access(a, p, bytes, writes);
}
}  // namespace

bool in_shared(const void* p) { return (u64)((const char*)p - shared_base) < WINDOW * RANKS; }

uint32_t shared_address(const void* p) { return (u32)((const char*)p - shared_base); }

void* shared_pointer(uint32_t address) {
  if (address >= WINDOW * RANKS) report("shared-bounds", "address 0x%x at {0} is not one of shared memory", address);
  return shared_base + (address % (WINDOW * RANKS));
}

unsigned char* shared_dynamic() { return (unsigned char*)shared_base + here->rank * WINDOW + START; }

void* shared_static(int id, size_t bytes, size_t alignment) {
  auto found = static_places.find(id);
  if (found == static_places.end()) {
    if (alignment < 16) alignment = 16;
    const u64 place = (static_end + alignment - 1) / alignment * alignment;
    static_end = place + bytes + 256;             // a gap after each array
    if (static_end > WINDOW || static_end > cells_per_rank) { report("shared-bounds", "static arrays of shared memory at {0} do not fit"); stop(); }
    found = static_places.emplace(id, place).first;
    static_arrays.push_back({place, bytes, true, 0});
  }
  return shared_base + here->rank * WINDOW + found->second;
}

void load(const Actor& a, const void* p, void* out, size_t bytes, size_t alignment) {
  if (access(a, p, bytes, false, alignment)) memcpy(out, p, bytes);
  else memset(out, 0xff, bytes);
}

void store(const Actor& a, void* p, const void* in, size_t bytes, size_t alignment) {
  if (access(a, p, bytes, true, alignment)) memcpy(p, in, bytes);
  settle_writes();
}

void read(const void* p, void* out, size_t bytes) { load(actor_of(*here), p, out, bytes, bytes); }
void write(void* p, const void* in, size_t bytes) { store(actor_of(*here), p, in, bytes, bytes); }

namespace {
template <class T> T atomically(void* p, T (*change)(T, T), T operand) {
  Actor a = actor_of(*here);
  a.atomic = true;
  T old = 0;
  if (!access(a, p, sizeof(T), true, sizeof(T))) return old;
  memcpy(&old, p, sizeof(T));
  const T fresh = change(old, operand);
  memcpy(p, &fresh, sizeof(T));
  return old;
}
}  // namespace

uint32_t atomic_read(const void* p) {
  Actor a = actor_of(*here);
  a.atomic = true;
  u32 value = 0;
  load(a, p, &value, 4, 4);
  return value;
}

uint16_t atomic16(void* p, uint16_t (*change)(uint16_t, uint16_t), uint16_t operand) { return atomically<u16>(p, change, operand); }
uint32_t atomic(void* p, uint32_t (*change)(uint32_t, uint32_t), uint32_t operand) { return atomically<u32>(p, change, operand); }
uint64_t atomic64(void* p, uint64_t (*change)(uint64_t, uint64_t), uint64_t operand) { return atomically<u64>(p, change, operand); }

void settle_writes() {
  if (doubtful.empty()) return;
  for (const Doubtful& d : doubtful)
    if (*d.place != d.old) conflict(d.actor, true, d.by, true, d.place);
  doubtful.clear();
}

void check_access(const void* p, size_t bytes, bool writes, u32 site, bool aligned, bool atomic) {
  settle_writes();
  if (in_stack(p)) {
    if (!self().held.empty()) check_registers(p, bytes, writes, site);
    return;
  }
  Actor a = actor_of(*here);
  a.site = site;
  a.atomic = atomic;
  access(a, p, bytes, writes, aligned ? bytes : 1);
}

void mark_barrier(u32 address, bool live) {
  Cell* c = shared_cells + (address / WINDOW) * cells_per_rank + address % WINDOW;
  for (int i = 0; i < 8; ++i) {
    c[i] = Cell();
    c[i].write = {now(), line_site(*here), (u16)(here->index + 1), live ? Proxy::barrier : Proxy::generic, 0};
  }
}

void start_memory(unsigned ranks) {
  if (!shared_base) {
    shared_base = reserve<char>(WINDOW * RANKS);
    cells_per_rank = (dynamic_end() + 1023) / 1024 * 1024 + (256 << 10);
    shared_cells = reserve<Cell>(cells_per_rank * ranks);
    static_end = (dynamic_end() + 1023) / 1024 * 1024;
  }
  ranks_used = ranks;
  const u64 used = std::max(dynamic_end(), static_arrays.empty() ? 0 : static_end);
  for (unsigned r = 0; r < ranks; ++r) {
    memset(shared_base + r * WINDOW, 0xff, used);   // not a number, in every floating type
    memset((void*)(shared_cells + r * cells_per_rank), 0, used * sizeof(Cell));
  }
  cluster_floor = now();
  synchronised = false;
}

void place_buffers(const std::vector<std::pair<const char*, u64>>& data, std::vector<char*>& places) {
  u64 total = GAP, cells = 0;
  for (auto& d : data) total += (d.second + 511) / 512 * 512 + GAP;
  char* base = reserve<char>(total);
  buffers_first = (u64)base;
  buffers_end = buffers_first + total;
  char* p = base + GAP;
  for (auto& d : data) {
    memcpy(p, d.first, d.second);
    buffers.push_back({(u64)p, d.second, true, cells});
    if (d.second <= SHADOWED) cells += d.second;
    places.push_back(p);
    p += (d.second + 511) / 512 * 512 + GAP;
  }
  if (cells) buffer_cells = reserve<Cell>(cells);
}

void see_other_clusters() { synchronised = true; }

}  // namespace machine
