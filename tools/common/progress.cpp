// SPDX-License-Identifier: BSD-2-Clause
#include "common/progress.hpp"

#include "common/report.hpp"

namespace usdt::tools {

Progress::Progress()
    : enabled_(errors().terminal().interactive), next_(Clock::now() + std::chrono::milliseconds(200)) {}

void Progress::show(std::string_view what, std::size_t count) {
  if (!enabled_) return;
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  errors().erase_line();
  errors().print("{}: {} files", what, count);
  static_cast<void>(errors().flush());
  visible_ = true;
}

void Progress::clear() {
  if (!visible_) return;
  errors().erase_line();
  static_cast<void>(errors().flush());
  visible_ = false;
}

}  // namespace usdt::tools
