// The program that runs one launch: a compiled kernel and a request file in; buffers back in the file, findings as lines of JSON.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "state.h"

namespace machine {

u64 kernel_base;

namespace {
struct Request {
  const u64* word;
  char* data;
  u64 next() { return *word++; }
  Index3 triple() { unsigned x = (unsigned)next(), y = (unsigned)next(), z = (unsigned)next(); return {x, y, z}; }
};

void on_signal(int number, siginfo_t* info, void*) {
  char text[160];
  snprintf(text, sizeof text, "the kernel crashed (signal %d, address %p) after {0}: a wild pointer, or a stack that overflowed", number, info->si_addr);
  report_at("crash", here ? line_site(*here) : 0, 0, text);
  print_reports();
  _exit(3);
}

void catch_signals() {
  static char stack[64 << 10];
  stack_t alternative = {};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof stack;
  sigaltstack(&alternative, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(number, &action, nullptr);
}

void read_launch(Request& q) {
  launch.grid = q.triple();
  launch.block = q.triple();
  launch.cluster = q.triple();
  launch.shared_bytes = (u32)q.next();
  launch.subgroup = (u32)q.next();
  launch.mode = (Mode)q.next();
  launch.seed = q.next();
}

std::vector<Argument> read_arguments(Request& q, std::vector<char*>& places, std::vector<std::pair<char*, u64>>& files) {
  const u64 buffers = q.next(), count = q.next();
  std::vector<std::pair<const char*, u64>> data;
  for (u64 i = 0; i < buffers; ++i) {
    char* at = q.data + q.next();
    const u64 bytes = q.next();
    files.emplace_back(at, bytes);
    data.emplace_back(at, bytes);
  }
  place_buffers(data, places);
  std::vector<Argument> out;
  for (u64 i = 0; i < count; ++i) {
    Argument a;
    a.kind = (Argument::Kind)q.next();
    a.bits = q.next();
    if (a.kind == Argument::pointer) a.bits = (u64)(places[a.bits] + q.next());
    if (a.kind == Argument::packed) {
      char* bytes = q.data + a.bits;
      for (u64 n = q.next(); n; --n) {
        const u64 offset = q.next(), buffer = q.next();
        const u64 address = (u64)(places[buffer] + q.next());
        memcpy(bytes + offset, &address, 8);
      }
      a.bits = (u64)bytes;
    }
    out.push_back(a);
  }
  return out;
}

void place_threads(Index3 first) {
  const Index3 b = launch.block, c = launch.cluster;
  const unsigned n = block_size(), ranks = c.x * c.y * c.z;
  fibers.resize((size_t)n * ranks);
  for (unsigned r = 0; r < ranks; ++r)
    for (unsigned t = 0; t < n; ++t) {
      Fiber& f = fibers[r * n + t];
      f.thread = {t % b.x, t / b.x % b.y, t / (b.x * b.y)};
      f.block = {first.x + r % c.x, first.y + r / c.x % c.y, first.z + r / (c.x * c.y)};
      f.threads = b;
      f.blocks = launch.grid;
      f.index = r * n + t;
      f.number = t;
      f.lane = t % launch.subgroup;
      f.subgroup = t / launch.subgroup;
      f.rank = r;
      f.ranks = ranks;
      f.subgroup_size = launch.subgroup;
      f.marks = 0;
    }
}

void run_all(const std::vector<Argument>& arguments, void (*entry)(const Argument*)) {
  const Index3 g = launch.grid, c = launch.cluster;
  const unsigned ranks = c.x * c.y * c.z;
  for (unsigned z = 0; z < g.z; z += c.z)
    for (unsigned y = 0; y < g.y; y += c.y)
      for (unsigned x = 0; x < g.x; x += c.x) {
        place_threads({x, y, z});
        start_memory(ranks);
        start_clocks(block_size() * ranks);
        start_barriers(ranks);
        start_collectives();
        start_transactions();
        start_engines();
        clear_clocks();
        run_cluster(arguments.data(), entry);
        if (stopped) return;
        finish_barriers();
        finish_engines();
      }
}
}  // namespace

int host(const char* kernel, const char* request) {
  const int file = open(request, O_RDWR);
  struct stat status;
  if (file < 0 || fstat(file, &status)) return 4;
  char* data = (char*)mmap(nullptr, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  void* library = dlopen(kernel, RTLD_NOW);
  if (!library) { fprintf(stderr, "%s\n", dlerror()); return 5; }
  auto entry = (void (*)(const Argument*))dlsym(library, "machine_entry");
  Dl_info info;
  if (!entry || !dladdr((void*)entry, &info)) return 6;
  kernel_base = (u64)info.dli_fbase;
  catch_signals();
  Request q = {(const u64*)data, data};
  read_launch(q);
  std::vector<char*> places;
  std::vector<std::pair<char*, u64>> files;
  const std::vector<Argument> arguments = read_arguments(q, places, files);
  const int wanted = *(const int*)dlsym(library, "machine_arity");
  if ((size_t)wanted != arguments.size()) {
    fprintf(stderr, "the kernel takes %d arguments, %zu were given\n", wanted, arguments.size());
    return 7;
  }
  const auto begin = std::chrono::steady_clock::now();
  run_all(arguments, entry);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (size_t i = 0; i < files.size(); ++i) memcpy(files[i].first, places[i], files[i].second);
  print_reports();
  printf("{\"seconds\":%.6f,\"stopped\":%s}\n", seconds, stopped ? "true" : "false");
  fflush(stdout);
  _exit(0);
}

}  // namespace machine

int main(int count, char** words) { return count == 3 ? machine::host(words[1], words[2]) : 8; }
