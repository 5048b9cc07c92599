// SPDX-License-Identifier: BSD-2-Clause
// The questions of one file while they are asked: a session, begun anew where it ended or could not begin.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exports.hpp"
#include "notices.hpp"
#include "question_files.hpp"

namespace usdt_agent {

/// What a file's questions are doing.
enum class FileState { waits, traces, fails };

class RunningFile {
 public:
  /// `exports` lives as long.
  RunningFile(QuestionFile file, Exports& exports) : file_(std::move(file)), exports_(exports) {}
  RunningFile(const RunningFile&) = delete;
  RunningFile& operator=(const RunningFile&) = delete;
  ~RunningFile() { end(); }

  /// Asks the questions. If that fails, step() tries again.
  void begin();
  /// Hands over what has come, without waiting.
  void step();
  /// Detaches, hands over what is left, and says what became of all hits.
  void end();

  [[nodiscard]] const QuestionFile& file() const noexcept { return file_; }
  [[nodiscard]] FileState state() const;
  /// Returns why the questions are not answered; empty: they are, or wait for something to trace.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  /// Returns a descriptor that is readable when step() has something to do; nothing: it has nothing for a while.
  [[nodiscard]] std::optional<int> fd();
  /// How often a session began after the first one.
  [[nodiscard]] std::uint64_t restarts() const noexcept { return restarts_; }

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] usdt::Result<void> ask();
  void fail(const usdt::Error& error);
  void try_later();

  QuestionFile file_;
  Exports& exports_;
  std::vector<std::unique_ptr<usdt::Sink>> sinks_ = {};
  std::vector<std::unique_ptr<usdt_trace::Notices>> notices_ = {};
  std::optional<usdt::Session> session_ = {};  ///< after what it refers to
  std::string failure_ = {};
  bool waits_for_subject_ = false;  ///< of processes, which begin() finds or not
  std::uint64_t restarts_ = 0;
  std::chrono::milliseconds pause_{0};
  Clock::time_point next_ = {};
};

}  // namespace usdt_agent
