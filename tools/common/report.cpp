// SPDX-License-Identifier: BSD-2-Clause
#include "common/report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <mutex>
#include <utility>

namespace usdt::tools {
namespace {

io::Stream::Patience& patience() {
  static io::Stream::Patience value;
  return value;
}

/// Notices of several threads come one after the other.
std::mutex& mutex() {
  static std::mutex value;
  return value;
}

void flush_errors() { static_cast<void>(errors().flush(patience())); }

}  // namespace

io::Stream& errors() {
  static io::Stream stream(STDERR_FILENO);
  return stream;
}

void set_patience(io::Stream::Patience value) { patience() = std::move(value); }

void print_error(std::string_view tool, const Error& error, std::string_view input) {
  print_notice(tool, error.message);
  if (!error.column || input.empty()) return;
  const std::lock_guard lock(mutex());
  // Escapes before the column move the caret along.
  const std::size_t column = io::shown_width(input.substr(0, *error.column));
  errors().print("  {}\n  {:>{}}\n", input, '^', column + 1);
  flush_errors();
}

void print_notice(std::string_view tool, std::string_view text) {
  const std::lock_guard lock(mutex());
  errors().print("{}: {}\n", tool, text);
  flush_errors();
}

void print_notice(std::string_view text) {
  const std::lock_guard lock(mutex());
  errors().print("{}\n", text);
  flush_errors();
}

std::string counted(std::size_t n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : what.ends_with('s') ? "es" : "s");
}

}  // namespace usdt::tools
