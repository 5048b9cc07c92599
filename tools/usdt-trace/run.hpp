// SPDX-License-Identifier: BSD-2-Clause
// What the questions of one run share: whom they are about, the command, and when it is over.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "child.hpp"
#include "flags.hpp"
#include "process_watch.hpp"
#include "usdt/usdt.hpp"

namespace usdt_trace {

using Clock = std::chrono::steady_clock;

/// Nanoseconds since 1970.
[[nodiscard]] inline std::int64_t wall_time() {
  return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Something came: wakes who waits for it, a tracer's loop or wait().
class Arrival {
 public:
  /// From now on that tracer's; null: nobody's.
  void wakes(const usdt::Tracer* tracer);
  void wake();
  /// For a moment at most: whoever waits has other things to look at.
  void wait();

 private:
  const usdt::Tracer* tracer_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool came_ = false;
};

class Run {
 public:
  /// `flags`: those of any question; what this is about they have in common.
  explicit Run(const Flags& flags) : flags_(flags), watch_(flags.question.processes.pids) {}

  /// Starts the command, held before it execs.
  usdt::Result<void> hold_command();
  usdt::Result<void> find_subjects();
  /// Lets the command go on; later calls do nothing.
  usdt::Result<void> release_command();
  /// The time of --duration begins.
  void begin_time();

  /// Nobody waits for this trace to go on: its time is over, or a signal came.
  [[nodiscard]] bool over() const;
  /// Hears within a moment that it is over, whatever the loop that looks for that is waiting for.
  [[nodiscard]] usdt::StopToken told_over();
  /// Nobody who asked told_over() waits for anything any more: the thread that looks for the end is done without.
  void stop_telling();
  /// It shall end.
  void end() { ended_ = true; }
  /// How long it may go on at most.
  [[nodiscard]] Clock::time_point end_of_time() const noexcept {
    return Clock::time_point(Clock::duration(end_.load()));
  }
  /// Whether to wait for a reader who takes nothing. While the trace shall go on, of course; then a second, in which
  /// one who is only slow takes what there is.
  [[nodiscard]] bool patient();
  /// What it was about has ended.
  [[nodiscard]] bool target_ended();

  [[nodiscard]] Clock::time_point started() const noexcept { return started_; }
  /// Of a process that is traced from before its first instruction; nothing: no command.
  [[nodiscard]] std::optional<pid_t> command() const { return child_ ? std::optional(child_->pid()) : std::nullopt; }
  /// Whether the command runs already.
  [[nodiscard]] bool released() const noexcept { return released_; }
  /// The command's exit code, once it has ended.
  [[nodiscard]] std::optional<int> command_ended() { return child_ ? child_->ended() : std::nullopt; }
  /// Ends it, where it still runs.
  void stop_command() {
    if (child_) child_->stop(std::chrono::seconds(2));
  }
  [[nodiscard]] const usdt::Subjects& subjects() const noexcept { return subjects_; }
  [[nodiscard]] Arrival& arrival() noexcept { return arrival_; }

 private:
  usdt::Result<void> find_cgroups();

  const Flags& flags_;
  Clock::time_point started_ = Clock::now();
  /// From before anything else is known of them: whatever the processes do from then on is seen.
  ProcessWatch watch_;
  std::optional<std::filesystem::path> program_ = {};
  usdt::Subjects subjects_ = {};
  std::optional<Child> child_ = {};
  bool released_ = false;  ///< the command
  Arrival arrival_ = {};
  std::atomic<bool> ended_ = false;
  /// Since the clock's epoch: 32-bit machines have atomic numbers of this size, and no such structs.
  std::atomic<Clock::rep> end_ = Clock::time_point::max().time_since_epoch().count();
  std::optional<Clock::time_point> last_patience_ = {};
  usdt::StopSource told_ = {};
  std::jthread teller_ = {};  ///< ends before what it looks at
};

}  // namespace usdt_trace
