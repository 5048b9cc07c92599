// SPDX-License-Identifier: BSD-2-Clause
// What the questions of one live session share: whom they are about, and when it is over.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "session/process_watch.hpp"
#include "sys/unique_fd.hpp"
#include "usdt/answers.hpp"
#include "usdt/question_plan.hpp"
#include "usdt/session.hpp"
#include "usdt/tracer.hpp"

namespace usdt::session {

using Clock = std::chrono::steady_clock;

/// Nanoseconds since 1970.
[[nodiscard]] inline std::int64_t wall_time() {
  return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Something came: wakes who waits for it, a tracer's loop or wait().
class Arrival {
 public:
  /// Errors: limit (descriptors).
  [[nodiscard]] Result<void> open();
  /// From now on that tracer's loop is woken, too; null: nobody's.
  void wakes(const Tracer* tracer);
  /// For any thread.
  void wake();
  /// Waits for a moment at most: whoever waits has other things to look at.
  void wait(std::chrono::milliseconds longest);
  /// Forgets what came so far.
  void clear() const;
  /// It is readable from wake() to clear().
  [[nodiscard]] int fd() const noexcept { return event_.get(); }

 private:
  sys::UniqueFd event_;
  std::mutex mutex_;
  const Tracer* tracer_ = nullptr;
};

/// Tells within a moment that a session is over, whoever waits for something else meanwhile.
class EndTeller {
 public:
  EndTeller() = default;
  EndTeller(const EndTeller&) = delete;
  EndTeller& operator=(const EndTeller&) = delete;
  ~EndTeller() { stop(); }

  /// The token of whose end `over` tells; it is asked from another thread, until stop(). Where the system has no more
  /// threads nobody is told.
  [[nodiscard]] StopToken start(const std::function<bool()>& over);
  void stop();

 private:
  StopSource told_ = {};
  std::atomic<bool> done_ = false;
  std::thread thread_ = {};
};

class LiveRun {
 public:
  /// `stop` asks for the end, from any thread; all references live as long.
  LiveRun(const Question& question, const SessionOptions& options, const std::atomic<bool>& stop)
      : question_(question), options_(options), stop_(stop), watch_(question.processes.pids) {}

  /// Finds whom the session is about. With AskedFollowing::wait cgroups that are not there are waited for, and said.
  [[nodiscard]] Result<void> find_subjects(AnswerConsumer& told);
  /// Something is attached or waited for from now on. Later calls do nothing.
  void begin_holding();
  /// Time counts from now on.
  void begin_time();

  [[nodiscard]] bool over() const;
  /// It shall end.
  void end() noexcept { ended_ = true; }
  /// A token that is told when it is over, until stop_telling().
  [[nodiscard]] StopToken told_over();
  void stop_telling() { teller_.stop(); }
  /// How long it may go on at most.
  [[nodiscard]] Clock::time_point end_of_time() const noexcept {
    return Clock::time_point(Clock::duration(end_.load()));
  }
  /// Whom it is about has ended.
  [[nodiscard]] bool subjects_ended() const { return !subjects_.pids.empty() && watch_.living().empty(); }

  [[nodiscard]] Clock::time_point started() const noexcept { return started_; }
  /// Of a process that is traced from before its first instruction; nothing: no command.
  [[nodiscard]] std::optional<pid_t> command() const {
    return options_.command > 0 ? std::optional(options_.command) : std::nullopt;
  }
  /// Whether the command may run already.
  [[nodiscard]] bool released() const noexcept { return released_; }
  void set_released() noexcept { released_ = true; }
  [[nodiscard]] const Subjects& subjects() const noexcept { return subjects_; }
  [[nodiscard]] Arrival& arrival() noexcept { return arrival_; }

 private:
  [[nodiscard]] Result<void> find_cgroups(AnswerConsumer& told);

  const Question& question_;
  const SessionOptions& options_;
  const std::atomic<bool>& stop_;
  Clock::time_point started_ = Clock::now();
  /// From before anything else is known of them: whatever the processes do from then on is seen.
  ProcessWatch watch_;
  Subjects subjects_ = {};
  bool released_ = false;  ///< the command
  bool holds_ = false;     ///< begin_holding()
  Arrival arrival_ = {};
  std::atomic<bool> ended_ = false;
  /// Since the clock's epoch: 32-bit machines have atomic numbers of this size, and no such structs.
  std::atomic<Clock::rep> end_ = Clock::time_point::max().time_since_epoch().count();
  EndTeller teller_ = {};  ///< ends before what it looks at
};

}  // namespace usdt::session
