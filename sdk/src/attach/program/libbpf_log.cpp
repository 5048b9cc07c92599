// SPDX-License-Identifier: BSD-2-Clause
#include "program/libbpf_log.hpp"

#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <new>
#include <utility>

#include "program/verifier_log.hpp"

namespace usdt::backends {
namespace {

/// Receives what libbpf prints on this thread; null: no LibbpfLog lives on it.
thread_local std::string* sink = nullptr;

/// libbpf has one print function for the whole process. This is who has it.
struct Printing {
  std::mutex mutex = {};
  unsigned logs = 0;                   ///< LibbpfLogs that live, on whatever thread
  libbpf_print_fn_t others = nullptr;  ///< the print function in whose place ours is; null: libbpf was silent
};
constinit Printing printing;

__attribute__((format(printf, 2, 0))) void append(std::string& text, const char* format, va_list args) {
  va_list again;
  va_copy(again, args);
  const int length = std::vsnprintf(nullptr, 0, format, args);
  try {
    std::string line(length > 0 ? static_cast<std::size_t>(length) : 0, '\0');
    std::vsnprintf(line.data(), line.size() + 1, format, again);
    text += line;
  } catch (const std::bad_alloc&) {
    // The caller is C. Without memory there are no words, and the call's own error stays.
  }
  va_end(again);
}

/// Our print function. Threads that have no LibbpfLog are the application's: their messages go where they went before.
__attribute__((format(printf, 2, 0))) int keep(libbpf_print_level level, const char* format, va_list args) {
  if (sink) {
    if (level != LIBBPF_DEBUG) append(*sink, format, args);
    return 0;
  }
  std::unique_lock lock(printing.mutex);
  const libbpf_print_fn_t print = printing.others;
  lock.unlock();
  return print ? print(level, format, args) : 0;
}

void take_printing() {
  const std::lock_guard lock(printing.mutex);
  ++printing.logs;
  // The application may have set its own since another thread of ours took it.
  if (const libbpf_print_fn_t before = libbpf_set_print(keep); before != keep) printing.others = before;
}

void give_printing_back() {
  const std::lock_guard lock(printing.mutex);
  if (--printing.logs > 0) return;
  // A function that the application has set meanwhile stays.
  if (const libbpf_print_fn_t now = libbpf_set_print(printing.others); now != keep) libbpf_set_print(now);
}

}  // namespace

LibbpfLog::LibbpfLog() : previous_(std::exchange(sink, &text_)) { take_printing(); }
LibbpfLog::~LibbpfLog() {
  give_printing_back();
  sink = previous_;
}

std::string LibbpfLog::last(std::string_view otherwise) const {
  const auto all = lines_of(text_);
  return std::string(all.empty() ? otherwise : all.back());
}

}  // namespace usdt::backends
