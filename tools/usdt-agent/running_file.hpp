// SPDX-License-Identifier: BSD-2-Clause
// The questions of one file while they are asked: a session, begun anew where it ended or could not begin.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bounded_notices.hpp"
#include "exports.hpp"
#include "question_files.hpp"

namespace usdt_agent {

/// The state of a file's questions.
enum class FileState { starting, waiting, traced, failing };

class RunningFile {
 public:
  /// The first step() that may asks the questions. `before` go on until they are asked, and end then, unless others
  /// wait for the same. `exports` lives as long.
  RunningFile(QuestionFile file, Exports& exports, std::vector<std::shared_ptr<RunningFile>> before = {})
      : file_(std::move(file)), exports_(exports), before_(std::move(before)) {}
  RunningFile(const RunningFile&) = delete;
  RunningFile& operator=(const RunningFile&) = delete;
  ~RunningFile() { end(); }

  /// Hands over what has come, without waiting. `may_begin`: asks the questions if that is due, in a thread of its own,
  /// since finding and attaching takes a while.
  void step(bool may_begin);
  /// Whether its questions are being asked by that thread.
  [[nodiscard]] bool is_beginning() const noexcept { return thread_.joinable() && !is_begun_; }
  /// Lets a session that is_beginning() come to its end. Those before it end.
  void stop_beginning();
  /// Detaches, hands over what is left, and says what became of all hits.
  void end();

  [[nodiscard]] const QuestionFile& file() const noexcept { return file_; }
  /// Whether that file takes the place of this one: it is this file, or has a question of this one.
  [[nodiscard]] bool is_before(const QuestionFile& other) const;
  [[nodiscard]] FileState state() const;
  /// Returns why the questions are not answered; empty: they are, or wait for something to trace.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  /// Returns what the questions wait for, in words; empty: they do not wait.
  [[nodiscard]] std::string waits_for() const;
  /// Adds descriptors that are readable when step() has something to do.
  void add_descriptors(std::vector<int>& all);
  /// How often a session began after the first one.
  [[nodiscard]] std::uint64_t restarts() const noexcept { return begun_times_ > 0 ? begun_times_ - 1 : 0; }

 private:
  using Clock = std::chrono::steady_clock;

  void begin();
  [[nodiscard]] usdt::Result<void> prepare();
  void take(const usdt::Result<void>& begun);
  void fail(const usdt::Error& error);
  void try_later();
  void drop();

  QuestionFile file_;
  Exports& exports_;
  std::vector<std::shared_ptr<RunningFile>> before_ = {};  ///< whose questions are answered until these are
  std::vector<std::unique_ptr<usdt::Sink>> sinks_ = {};
  std::vector<std::unique_ptr<BoundedNotices>> notices_ = {};
  std::optional<usdt::Session> session_ = {};     ///< after what it refers to
  std::optional<usdt::Result<void>> begun_ = {};  ///< by the thread
  std::atomic<bool> is_begun_ = false;            ///< `begun_` may be read
  std::jthread thread_ = {};                      ///< that begins the session, which is the thread's alone meanwhile
  std::string failure_ = {};
  bool waits_for_subject_ = false;  ///< of processes, which begin() finds or not
  std::uint64_t begun_times_ = 0;
  std::chrono::milliseconds pause_{0};
  Clock::time_point next_ = {};
};

}  // namespace usdt_agent
