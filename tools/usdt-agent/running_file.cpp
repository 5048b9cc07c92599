// SPDX-License-Identifier: BSD-2-Clause
#include "running_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/report.hpp"
#include "common/thread.hpp"

namespace usdt_agent {

using std::chrono::milliseconds;

bool RunningFile::is_before(const QuestionFile& other) const {
  if (other.path == file_.path) return true;
  return std::ranges::any_of(file_.questions, [&](const AskedQuestion& mine) {
    return std::ranges::any_of(other.questions, [&](const AskedQuestion& theirs) {
      return mine.flags.question.name == theirs.flags.question.name;
    });
  });
}

void RunningFile::begin() {
  ++begun_times_;
  auto prepared = prepare();
  if (!prepared) return take(prepared);
  is_begun_ = false;
  thread_ = usdt::tools::start_helper([this] {
    begun_ = session_->begin();
    is_begun_ = true;
  });
  if (!thread_.joinable()) take(session_->begin());
}

/// The session has begun, or not. Those before it end.
void RunningFile::take(const usdt::Result<void>& begun) {
  before_.clear();
  if (!begun) return fail(begun.error());
  failure_.clear();
  waits_for_subject_ = false;
  pause_ = milliseconds(0);
}

usdt::Result<void> RunningFile::prepare() {
  session_.emplace(usdt::SessionOptions{.features = file_.questions.front().flags.features});
  for (const AskedQuestion& asked : file_.questions) {
    std::vector<usdt::AnswerConsumer*> consumers;
    for (const usdt_trace::ExportPart& place : asked.exports) {
      auto sink = exports_.sink_of(place);
      if (!sink) return usdt::fail(sink.error().within(name_of(place)));
      consumers.push_back(sink->get());
      sinks_.push_back(std::move(*sink));
    }
    notices_.push_back(std::make_unique<BoundedNotices>(asked.flags));
    consumers.push_back(notices_.back().get());
    usdt::Question question = asked.flags.question;
    // begin() would wait for a cgroup, and everything else with it: step() looks for it again.
    if (!question.processes.cgroups.empty() || !question.processes.containers.empty()) question.following.wait = false;
    session_->add(std::move(question), std::move(consumers), asked.flags.script.place);
  }
  return {};
}

void RunningFile::fail(const usdt::Error& error) {
  waits_for_subject_ = error.kind == usdt::ErrorKind::not_found;
  const std::string text = error.message;
  if (text != failure_) usdt::tools::print_notice(kTool, fmt::format("{}: {}; it is tried again", file_.path, text));
  drop();
  failure_ = text;
  try_later();
}

void RunningFile::try_later() {
  constexpr milliseconds first{1000}, longest{30'000};
  pause_ = std::clamp(2 * pause_, first, longest);
  next_ = Clock::now() + pause_;
}

void RunningFile::step(bool may_begin) {
  for (const auto& before : before_) before->step(false);
  if (thread_.joinable()) {
    if (!is_begun_) return;
    thread_.join();
    return take(*begun_);
  }
  for (const auto& notices : notices_) notices->say_what_was_left_out();
  if (!session_) {
    if (may_begin && Clock::now() >= next_) begin();
    return;
  }
  const auto more = session_->step(milliseconds(0));
  if (more && *more) return;
  const std::optional<usdt::Error> error = more ? std::nullopt : std::optional(more.error());
  end();
  if (error) return fail(*error);
  failure_ = "everything that was traced is gone";
  waits_for_subject_ = true;
  try_later();
}

void RunningFile::stop_beginning() {
  before_.clear();
  if (is_beginning()) session_->request_stop();
}

void RunningFile::end() {
  before_.clear();
  if (!session_) return;
  if (thread_.joinable()) {
    session_->request_stop();
    thread_.join();
  }
  if (auto finished = session_->finish(); !finished) usdt::tools::print_error(kTool, finished.error());
  session_.reset();
  for (const auto& sink : sinks_)
    if (const auto why = sink->failure())
      usdt::tools::print_notice(
          kTool, fmt::format("{}: {}; what is missing there is counted as not_written", sink->name(), *why));
  drop();
}

void RunningFile::drop() {
  session_.reset();
  sinks_.clear();
  notices_.clear();
}

FileState RunningFile::state() const {
  const bool is_beginning = thread_.joinable() || begun_times_ == 0;
  if (is_beginning && failure_.empty())
    return FileState::starting;  // else it is tried again, and fails until it does not
  if (session_ && !is_beginning) return session_->traces() ? FileState::traced : FileState::waiting;
  return waits_for_subject_ ? FileState::waiting : FileState::failing;
}

std::string RunningFile::waits_for() const {
  if (state() != FileState::waiting) return {};
  if (!failure_.empty()) return failure_;
  std::string all;
  for (const auto& notices : notices_)
    if (!notices->waits_for().empty()) all += (all.empty() ? "" : "; ") + notices->waits_for();
  return all.empty() ? "something to trace" : all;
}

void RunningFile::add_descriptors(std::vector<int>& all) {
  for (const auto& before : before_) before->add_descriptors(all);
  if (!session_ || thread_.joinable()) return;
  if (const auto fd = session_->fd()) all.push_back(*fd);
}

}  // namespace usdt_agent
