// State of the machine while a cluster of blocks runs. One cluster at a time, one operating-system thread.
#pragma once
#include <deque>
#include <map>
#include <string>
#include <unordered_map>

#include "operations.h"

namespace machine {

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t i64;

struct Launch {
  Index3 grid, block, cluster;
  u32 shared_bytes, subgroup;
  Mode mode;
  u64 seed;
};
extern Launch launch;

enum class State : u8 { ready, blocked, polling, done };

struct Waiting {
  enum Kind : u8 { nothing, barrier, collective, transaction, cluster, memory } kind = nothing;
  const char* what = "";
  u32 object = 0;      // identifier or address of what is waited for
  u32 detail = 0;      // parity, or threads expected
};

struct Fiber : Thread {
  void* stack_pointer;
  char* stack;
  State state;
  Waiting waiting;
  u32* seen;           // by agent: the last clock that is ordered before this thread
  u32* passed;         // the same, for what a proxy fence has let through
  std::shared_ptr<const Snapshot> snapshot;   // of both, dropped when they change
  std::vector<std::shared_ptr<Registers>> held;
  u64 progress;        // when it last polled
};

// ---- scheduler
extern std::vector<Fiber> fibers;
extern u64 progress;                  // grows with everything that may let a thread go on
Fiber& self();
void block_here(const Waiting& waiting);
void wake(Fiber& fiber);
void run_cluster(const Argument* arguments, void (*entry)(const Argument*));
[[noreturn]] void deadlock();
unsigned block_size();
extern bool stopped;

// ---- clocks
extern u32 agents;                    // in use: the threads first, then engines
u32 now();                            // a fresh clock
u32 new_agent();
void clear_clocks();
void start_clocks(unsigned threads);
struct Clock {                        // of a thing that threads release to and acquire from
  std::vector<u32> seen, passed;
  void clear();
  void join(const Fiber& fiber);
  void join(const Clock& other);
  void raise(u32 agent, u32 clock);
};
void acquire(Fiber& fiber, const Clock& clock);
void raise(Fiber& fiber, u32 agent, u32 clock);
void advance(Fiber& fiber);           // after a release: what follows is later
std::shared_ptr<const Snapshot> snapshot(Fiber& fiber);
std::shared_ptr<const Snapshot> common(unsigned first, unsigned members);   // what every subgroup of them has seen

// ---- memory
void start_memory(unsigned ranks);    // for a cluster
void finish_memory();
bool in_shared(const void* pointer);
bool in_stack(const void* pointer);
void see_other_clusters();           // the running blocks have synchronised with earlier ones
void place_buffers(const std::vector<std::pair<const char*, u64>>& data, std::vector<char*>& places);
void mark_barrier(u32 address, bool live);
void check_access(const void* pointer, size_t bytes, bool writes, u32 site, bool aligned, bool atomic = false);
void settle_writes();                // after a store: whether it wrote what another thread had written
void check_registers(const void* pointer, size_t bytes, bool writes, u32 site);

// ---- what is waited for
void start_barriers(unsigned ranks);
void finish_barriers();
void start_collectives();
void start_transactions();
bool explain_barriers();
bool explain_collectives();
std::string transaction_text(u32 address);
void start_engines();
bool perform_something();             // one asynchronous operation, when nothing else can run
void perform_by_chance();
void finish_engines();                // reports what is still in flight
bool rank_ended(unsigned rank);
void start_departures(unsigned ranks);
void touch_far(const Actor& actor, unsigned rank);   // an access to memory of the block of that rank
void depart(unsigned rank);          // its last thread has ended

// ---- reports
bool known_fault(const char* code, u32 first, u32 second);   // counts it, if it has been reported
void report_at(const char* code, u32 first, u32 second, const std::string& text);
u32 line_site(const Thread& thread);
void print_reports();
std::string threads_text(const std::vector<unsigned>& indices);
std::string thread_text(unsigned index);

}  // namespace machine
