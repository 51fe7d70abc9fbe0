// Findings: collected once for each code and pair of places, printed as lines of JSON at the end (or at a crash).
#include <cstdarg>
#include <cstdio>
#include <string_view>
#include <tuple>

#include "state.h"

namespace machine {

namespace {
struct Finding {
  std::string code, text;
  u32 first, second;
  Index3 block;
  unsigned thread;
  u64 count;
};
std::vector<Finding> findings;
std::map<std::tuple<std::string_view, u32, u32>, size_t> known;   // codes are literals
const size_t MOST = 200;

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') out += "\\n";
    else out += c;
  }
  return out;
}
}  // namespace

u32 line_site(const Thread& thread) { return (u32)thread.line; }

bool known_fault(const char* code, u32 first, u32 second) {
  auto found = known.find({code, first, second});
  if (found == known.end()) return false;
  if (found->second < findings.size()) ++findings[found->second].count;
  return true;
}

void report_at(const char* code, u32 first, u32 second, const std::string& text) {
  if (known_fault(code, first, second) || findings.size() == MOST) return;
  known[{code, first, second}] = findings.size();
  const Index3 none = {0, 0, 0};
  findings.push_back({code, text, first, second, here ? here->block : none, here ? here->number : 0, 1});
}

void report(const char* code, const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  report_at(code, here ? line_site(*here) : 0, 0, text);
}

void print_reports() {
  for (const Finding& f : findings)
    printf("{\"code\":\"%s\",\"text\":\"%s\",\"places\":[%u,%u],\"block\":[%u,%u,%u],\"thread\":%u,\"count\":%llu}\n",
           f.code.c_str(), escaped(f.text).c_str(), f.first, f.second, f.block.x, f.block.y, f.block.z, f.thread,
           (unsigned long long)f.count);
  findings.clear();
  fflush(stdout);
}

std::string thread_text(unsigned index) {
  const Fiber& f = fibers[index];
  std::string text = "thread " + std::to_string(f.number);
  return f.ranks > 1 ? text + " of block " + std::to_string(f.rank) + " of the cluster" : text;
}

// "threads 0..31 and 64..95"
std::string threads_text(const std::vector<unsigned>& indices) {
  std::string out;
  for (size_t i = 0; i < indices.size();) {
    size_t j = i;
    while (j + 1 < indices.size() && indices[j + 1] == indices[j] + 1) ++j;
    if (!out.empty()) out += ", ";
    out += std::to_string(indices[i]);
    if (j > i) out += ".." + std::to_string(indices[j]);
    i = j + 1;
  }
  return (indices.size() == 1 ? "thread " : "threads ") + out;
}

}  // namespace machine
