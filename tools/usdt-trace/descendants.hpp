// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <vector>

namespace usdt_trace {

/// A process held by a pidfd: a signal reaches it or nobody, however quickly its number is given to another.
class HeldProcess {
 public:
  explicit HeldProcess(int pidfd) noexcept : fd_(pidfd) {}
  HeldProcess(HeldProcess&& other) noexcept;
  HeldProcess& operator=(HeldProcess&&) = delete;
  ~HeldProcess();

  /// False: it has ended.
  bool signal(int number) const noexcept;

 private:
  int fd_;
};

/// Every process that descends from the calling one, a subreaper, but for copies of its own program: helpers it forked.
/// Orphans count, having been handed to the subreaper; so do processes that made a session of their own.
[[nodiscard]] std::vector<HeldProcess> hold_descendants();

}  // namespace usdt_trace
