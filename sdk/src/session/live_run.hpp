// SPDX-License-Identifier: BSD-2-Clause
// Processes and end of one live session, which all its questions share.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
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

/// Wakes who waits for something that came: a tracer's loop, or wait().
class Arrival {
 public:
  /// Errors: limit (descriptors).
  [[nodiscard]] Result<void> open();
  /// Makes wake() wake that tracer's loop, too; null: nobody's.
  void wakes(const Tracer* tracer);
  /// Wakes the waiters. May be called by any thread.
  void wake();
  /// Waits for wake(), but no longer than a moment: whoever waits has other things to look at.
  void wait(std::chrono::milliseconds longest);
  /// Forgets what came so far.
  void clear() const;
  /// Returns a descriptor that is readable from wake() to clear().
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

  /// Returns a token that is stopped when `over` returns true. A thread asks `over` until stop(); if the system has no
  /// more threads, the token is never stopped.
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

  /// Finds the processes that the session is about. Under AskedFollowing::wait, waits for cgroups that are not there,
  /// and says so.
  [[nodiscard]] Result<void> find_subjects(AnswerConsumer& told);
  /// Something is attached or waited for from now on. Later calls do nothing.
  void begin_holding();
  /// Time counts from now on.
  void begin_time();

  [[nodiscard]] bool over() const;
  /// Ends the session.
  void end() noexcept { ended_ = true; }
  /// Returns a token that is stopped when the session is over, until stop_telling().
  [[nodiscard]] StopToken told_over();
  void stop_telling() { teller_.stop(); }
  /// Returns the time at which it ends at the latest.
  [[nodiscard]] Clock::time_point end_of_time() const noexcept {
    return Clock::time_point(Clock::duration(end_.load()));
  }
  /// Whether all processes that it is about have ended.
  [[nodiscard]] bool subjects_ended() const { return !subjects_.pids.empty() && watch_.living().empty(); }

  [[nodiscard]] Clock::time_point started() const noexcept { return started_; }
  /// Returns the command's process, traced from before its first instruction; nothing: no command.
  [[nodiscard]] std::optional<pid_t> command() const {
    return options_.command > 0 ? std::optional(options_.command) : std::nullopt;
  }
  /// Returns the process with whose end the session ends; 0: there is none, or there are several.
  [[nodiscard]] pid_t last_process() const {
    if (options_.command > 0) return options_.command;
    return subjects_.pids.size() == 1 ? subjects_.pids.front() : 0;
  }
  /// Returns who attaches; null: this process.
  [[nodiscard]] const std::shared_ptr<Broker>& broker() const noexcept { return options_.broker; }
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
  /// Made before anything else is known of the processes: whatever they do from then on is seen.
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
