// What a vendor's meaning of instructions sees of the machine: collectives, memory on behalf of others, asynchronous operations.
#pragma once
#include <memory>
#include <vector>

#include "machine.h"

namespace machine {

enum class Mode { early, late, random };
Mode mode();
uint32_t random_number();

// The way by which memory is reached. Writes of `generic` and `copy` need a proxy fence before `async` sees them.
enum class Proxy : uint8_t { generic, copy, async, barrier };

// What one agent (a thread or an asynchronous operation) has seen of the others.
struct Snapshot {
  std::vector<uint32_t> seen, passed;   // ordered before it; and made visible to the asynchronous proxy
};

struct Actor {
  uint32_t agent, clock, site;          // site: source line, or 1 << 31 | offset of the instruction
  const uint32_t *seen, *passed;
  uint32_t width;
  Proxy proxy;
  bool atomic;
  unsigned thread;                      // number in the cluster of the thread that does or issued it
};

Thread& thread_at(unsigned index);
Actor actor_of(const Thread& thread);
void load(const Actor& actor, const void* pointer, void* out, size_t bytes, size_t alignment);
void store(const Actor& actor, void* pointer, const void* in, size_t bytes, size_t alignment);

// ---- collectives: all lanes of `lanes` come with their operands, then `run` works once for all of them
struct Group {
  unsigned first, count;                // index of lane 0 in the cluster, size of the group
  uint64_t lanes;                       // which take part (all, when a group has more than 64)
  void* operands[256];                  // of each lane; null when it does not take part
  bool has(unsigned lane) const { return operands[lane] != nullptr; }
  template <class T> T& of(unsigned lane) const { return *(T*)operands[lane]; }
  Actor actor(unsigned lane) const { return actor_of(thread_at(first + lane)); }
};
typedef void (*Collective)(Group& group);
void subgroup_collective(const char* what, uint64_t lanes, void* operands, Collective run);
void block_collective(const char* what, unsigned group_size, void* operands, Collective run);   // consecutive threads

// ---- asynchronous operations
struct Operation {
  virtual ~Operation() {}
  virtual void perform() = 0;           // reads and writes memory as `actor`
  Actor actor{};
  std::shared_ptr<const Snapshot> clocks;
  unsigned owner = 0;                   // index of the issuing thread (of the first one of a group)
  const char* what = "";
  bool done = false;
};
typedef std::unique_ptr<Operation> Pending;

// Operations that complete by groups, in order: issued by one thread or by a group of threads (`members`).
enum class Queue : uint8_t { copy, bulk, matrix };
void submit(Queue queue, Pending operation, unsigned members, const char* what, Proxy proxy);
void commit(Queue queue, unsigned owner);
void wait_group(Queue queue, unsigned owner, unsigned members, unsigned left);
void wait_all(Queue queue, unsigned owner, unsigned members);   // the open group too
// An arrival when all operations so far are done. Who waits for it has seen their writes, and with `passes_on` also what came
// before they were submitted; they are then over.
void after_queue(Queue queue, unsigned owner, uint32_t barrier, bool passes_on = false);

// Operations that complete at a transaction barrier; `perform` calls `complete`.
void submit_transaction(Pending operation, const char* what);
void complete(const Operation& operation, uint32_t barrier, int64_t bytes);
void check_visible(const Actor& actor, uint32_t barrier);   // its initialisation, to the asynchronous proxy

// `run` is called whenever the running blocks have ended, to report what they left behind.
void when_blocks_end(void (*run)());

// ---- registers that a pending matrix operation writes
struct Registers {
  std::vector<char*> places;            // of each thread of the group
  size_t bytes;
  std::vector<std::vector<char>> values;
  unsigned pending = 0;
  char* of(unsigned lane) { return values.empty() ? places[lane] : values[lane].data(); }
};
std::shared_ptr<Registers> hold_registers(const Group& group, const std::vector<char*>& places, size_t bytes);
void release_registers(Registers& registers, unsigned first);
// a matrix operation calls it with what it holds; `wait_group` then gives the registers back
struct RegisterOperation : Operation {
  std::shared_ptr<Registers> registers;
};

}  // namespace machine
