// SPDX-License-Identifier: BSD-2-Clause
// Programs held at their start, until what they run has been looked at. Private to follow/.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "follow/hold_times.hpp"
#include "sys/unique_fd.hpp"
#include "usdt/follow.hpp"
#include "usdt/result.hpp"

namespace usdt::follow {

/// An execve(2) that waits.
struct HeldExec {
  std::uint64_t id = 0;
  sys::UniqueFd file = {};  ///< what it is about to run, open for reading
  pid_t pid = 0;
};

/// A file in memory (memfd_create(2)) that a process has open.
struct MemoryFile {
  std::filesystem::path name;  ///< "/memfd:NAME (deleted)"
  std::filesystem::path path;  ///< "/proc/PID/fd/N"
};

/// The kernel tells nobody who executes such a file (it is of a file system that cannot be watched), but that its
/// interpreter is executed: at that time the process has it open still.
[[nodiscard]] std::vector<MemoryFile> memory_files_of(pid_t pid);

/// fanotify(7): FAN_OPEN_EXEC_PERM (5.0) on every file system that is mounted here. A thread of its own answers at once
/// for processes that are not followed and for files that have been looked at; the others wait for release(), but never
/// longer than kLongest, not even while this process is stopped (HoldKeeper). The kernel lets all go that wait when the
/// descriptor is closed: by the destructor, or by the end of this process, of whatever kind.
class ExecHold {
 public:
  static constexpr std::uint64_t kLongest = 1'000'000'000;  ///< ns

  /// `on_held` is called from the thread when take() has something. Errors: no_permission (CAP_SYS_ADMIN),
  /// not_supported, limit.
  [[nodiscard]] static Result<ExecHold> start(FollowScope scope, std::function<void()> on_held);
  ExecHold(ExecHold&&) noexcept;
  ExecHold& operator=(ExecHold&&) noexcept;
  ~ExecHold();

  /// Returns the execs that wait to be looked at, each once.
  [[nodiscard]] std::vector<HeldExec> take();
  /// Marks the file of an exec as looked at: nobody who runs it from now on waits.
  void know(std::uint64_t id);
  /// Allows an exec to go on. Has no effect on one that has gone on already.
  void release(std::uint64_t id);

  [[nodiscard]] HoldTimes times() const;

 private:
  struct State;
  explicit ExecHold(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace usdt::follow
