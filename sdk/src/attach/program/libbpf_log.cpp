// SPDX-License-Identifier: BSD-2-Clause
#include "program/libbpf_log.hpp"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <utility>

#include "program/verifier_log.hpp"

namespace usdt::backends {
namespace {

thread_local std::string* sink = nullptr;
std::atomic<libbpf_print_fn_t> applications{nullptr};

__attribute__((format(printf, 2, 0))) int keep(libbpf_print_level level, const char* format, va_list args) {
  if (!sink) {
    const libbpf_print_fn_t print = applications;
    return print ? print(level, format, args) : 0;
  }
  if (level == LIBBPF_DEBUG) return 0;
  va_list again;
  va_copy(again, args);
  const int length = std::vsnprintf(nullptr, 0, format, args);
  std::string line(length > 0 ? static_cast<std::size_t>(length) : 0, '\0');
  std::vsnprintf(line.data(), line.size() + 1, format, again);
  va_end(again);
  *sink += line;
  return length;
}

}  // namespace

LibbpfLog::LibbpfLog() : previous_(std::exchange(sink, &text_)) {
  // libbpf has one function for the process: ours stays in place, and passes on what other threads' calls say.
  const libbpf_print_fn_t before = libbpf_set_print(keep);
  if (before != keep) applications = before;
}
LibbpfLog::~LibbpfLog() { sink = previous_; }

std::string LibbpfLog::last(std::string_view otherwise) const {
  const auto all = lines_of(text_);
  return std::string(all.empty() ? otherwise : all.back());
}

}  // namespace usdt::backends
