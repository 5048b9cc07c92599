// SPDX-License-Identifier: BSD-2-Clause
// The process of the red-zone self-test that is hit by the probe.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>

#include "features/measured_code.hpp"
#include "sys/unique_fd.hpp"

namespace usdt::features {

inline constexpr std::size_t kLongestNop = 10;

/// The report of the child. Small enough for a pipe to take it at once.
struct RedZoneOutcome {
  std::uint32_t overwritten = 0;
  bool stepped = false;  ///< it has the page in which the kernel runs single-stepped instructions
  std::array<unsigned char, kLongestNop> bytes{};  ///< of the nop, as they have become
};

/// A forked child that waits to call the function. Ended with this object.
class RedZoneChild {
 public:
  RedZoneChild(const RedZoneCode& code, std::uint32_t calls);
  RedZoneChild(const RedZoneChild&) = delete;
  RedZoneChild& operator=(const RedZoneChild&) = delete;
  ~RedZoneChild();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// The errno of the fork, where it failed.
  [[nodiscard]] int os_error() const noexcept { return os_error_; }

  /// Returns false if the child died of the call.
  [[nodiscard]] bool call(RedZoneOutcome& outcome);

 private:
  pid_t pid_ = -1;
  int os_error_ = 0;
  sys::UniqueFd to_child_, from_child_;
};

}  // namespace usdt::features
