// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <sys/types.h>

#include <vector>

namespace usdt::session {

/// Watches whether processes of others are still there.
class ProcessWatch {
 public:
  explicit ProcessWatch(const std::vector<pid_t>& pids);
  ~ProcessWatch();
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;
  /// Returns the processes that have not ended, as far as can be told.
  [[nodiscard]] std::vector<pid_t> living() const;

 private:
  struct Watched {
    pid_t pid;
    int fd;  ///< below 0: cannot be watched
  };
  std::vector<Watched> watched_;
};

}  // namespace usdt::session
