// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "usdt/result.hpp"

namespace usdt_trace {

/// A command held between fork and exec until tracing has begun, so that none of its hits is missed.
class Child {
 public:
  /// Forks, for `command` run as `program`. The calling process becomes a subreaper: orphaned grandchildren stay its
  /// descendants.
  [[nodiscard]] static usdt::Result<Child> fork(const std::filesystem::path& program,
                                                const std::vector<std::string>& command);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  /// Kills it if it was not released, or still runs.
  ~Child();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Lets it exec. Error: why exec failed.
  [[nodiscard]] usdt::Result<void> release();
  /// Its exit code (128 + signal), once it has ended.
  [[nodiscard]] std::optional<int> ended();
  /// Ends it and every process that descends from it: SIGTERM, and SIGKILL for what is still there after `grace`. If it
  /// has ended by itself, nothing is ended: processes that it left in the background were meant to stay. One that was
  /// not released has not run: it is gone at once.
  void stop(std::chrono::milliseconds grace);

 private:
  Child() = default;
  void stop_before_it_runs();
  /// False: some are still there after `longest`.
  bool wait_for_all(std::chrono::milliseconds longest);
  pid_t pid_ = -1;
  int go_ = -1;       ///< closing or writing lets the child go on
  int failure_ = -1;  ///< exec's errno comes here; closed by a successful exec
  std::optional<int> code_;
};

}  // namespace usdt_trace
