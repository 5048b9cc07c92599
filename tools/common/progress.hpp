// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

namespace usdt::tools {

/// One line on standard error that counts along, if that is a terminal and the work takes longer than a moment. Gone
/// when this object is.
class Progress {
 public:
  Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  /// Shows "WHAT: COUNT files", a few times a second at most.
  void show(std::string_view what, std::size_t count);
  /// Takes the line away, for other output.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool enabled_ = false;
  bool visible_ = false;
  Clock::time_point next_;
};

}  // namespace usdt::tools
