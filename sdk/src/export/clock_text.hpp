// SPDX-License-Identifier: BSD-2-Clause
// Times of day.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>

#include "io/stream.hpp"

namespace usdt::exports {

/// Prints times as clocks show them, and makes the text of each second once.
class ClockText {
 public:
  /// Prints "14:03:07.123456" of `wall`, ns since 1970, in the time zone of the process.
  void show(io::Stream& out, std::int64_t wall);

 private:
  std::time_t second_ = -1;
  std::string text_;
};

}  // namespace usdt::exports
