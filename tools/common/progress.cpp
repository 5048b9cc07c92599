// SPDX-License-Identifier: BSD-2-Clause
#include "common/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "common/terminal.hpp"

namespace usdt::tools {

Progress::Progress()
    : enabled_(Terminal::of(STDERR_FILENO).interactive), next_(Clock::now() + std::chrono::milliseconds(200)) {}

void Progress::show(std::string_view what, std::size_t count) {
  if (!enabled_) return;
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  fmt::print(stderr, "\r\x1b[K{}: {} files", printable(what), count);
  std::fflush(stderr);
  visible_ = true;
}

void Progress::clear() {
  if (!visible_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  visible_ = false;
}

}  // namespace usdt::tools
