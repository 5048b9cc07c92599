// SPDX-License-Identifier: BSD-2-Clause
// A question of a session, and all that takes its answers: sinks, values, and the notices of the session.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "handles.hpp"
#include "usdt/sink.hpp"
#include "values.hpp"

namespace usdtc {

/// Keeps the notices of a question in `kept`, among those of others.
class NoticeKeeper final : public usdt::AnswerConsumer {
 public:
  explicit NoticeKeeper(std::deque<Notice>& kept) : kept_(kept) {}
  void begin(const usdt::AnswerStart& start) override { name_ = start.question.name; }
  void notice(const usdt::SessionNotice& notice) override {
    kept_.push_back({USDTC_NOTICE_SESSION, UINT32_MAX, name_.empty() ? notice.text : name_ + ": " + notice.text});
  }
  bool in_no_hurry() const override { return true; }

 private:
  std::deque<Notice>& kept_;
  std::string name_;
};

/// Text that sinks were given, and that nobody has passed over yet.
struct KeptText {
  std::string text = {};
  bool overflowed = false;  ///< some sink had more than may be kept
};

/// Takes the answers to one question in each way that is wanted. A move leaves the consumers where they are.
class AskedQuestion {
 public:
  explicit AskedQuestion(std::deque<Notice>& notices) : notices_(std::make_unique<NoticeKeeper>(notices)) {}

  /// Adds a sink that the caller wants; `kept` takes the text of one that keeps it. Errors: invalid_argument,
  /// no_permission, io.
  [[nodiscard]] usdt::Result<void> add(const usdtc_sink* given, const usdt::Question& question, KeptText& kept);
  /// Adds the recording that the question itself asks for.
  [[nodiscard]] usdt::Result<void> add_record(const usdt::Question& question);
  [[nodiscard]] std::vector<usdt::AnswerConsumer*> consumers() const;
  /// Says whether no sink writes to the file of another one of its own, or of `other`. Errors: invalid_argument.
  [[nodiscard]] usdt::Result<void> check_apart(const AskedQuestion& other) const;
  /// Says whether no sink writes to the recording that is read. Errors: invalid_argument.
  [[nodiscard]] usdt::Result<void> check_spared(const std::string& recording) const;
  [[nodiscard]] ValueTaker& values() const noexcept { return *values_; }
  /// Errors: io, of the first sink that could not write everything.
  [[nodiscard]] usdt::Result<void> check_written() const;

 private:
  [[nodiscard]] usdt::Result<void> open(const char* format, usdt::SinkOptions options, const usdt::Question& question);

  std::vector<std::unique_ptr<usdt::Sink>> sinks_ = {};
  std::unique_ptr<ValueTaker> values_ = std::make_unique<ValueTaker>();
  bool has_values_ = false;  ///< some sink asked for them
  std::unique_ptr<NoticeKeeper> notices_;
};

}  // namespace usdtc
