// SPDX-License-Identifier: BSD-2-Clause
#include "running_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/report.hpp"

namespace usdt_agent {

using std::chrono::milliseconds;

void RunningFile::begin() {
  auto asked = ask();
  if (!asked) return fail(asked.error());
  failure_.clear();
  waits_for_subject_ = false;
  pause_ = milliseconds(0);
}

usdt::Result<void> RunningFile::ask() {
  session_.emplace(usdt::SessionOptions{.features = file_.questions.front().flags.features});
  for (const AskedQuestion& asked : file_.questions) {
    std::vector<usdt::AnswerConsumer*> consumers;
    for (const usdt_trace::ExportPart& place : asked.exports) {
      auto sink = exports_.sink_of(place);
      if (!sink) return usdt::fail(sink.error().within(name_of(place)));
      consumers.push_back(sink->get());
      sinks_.push_back(std::move(*sink));
    }
    notices_.push_back(std::make_unique<usdt_trace::Notices>(asked.flags, [] { return false; }));
    consumers.push_back(notices_.back().get());
    usdt::Question question = asked.flags.question;
    // begin() would wait for a cgroup, and everything else with it: step() looks for it again.
    if (!question.processes.cgroups.empty() || !question.processes.containers.empty()) question.following.wait = false;
    session_->add(std::move(question), std::move(consumers), asked.flags.script.place);
  }
  return session_->begin();
}

void RunningFile::fail(const usdt::Error& error) {
  waits_for_subject_ = error.kind == usdt::ErrorKind::not_found;
  const std::string text = error.message;
  if (text != failure_) usdt::tools::print_notice(kTool, fmt::format("{}: {}; it is tried again", file_.path, text));
  session_.reset();
  sinks_.clear();
  notices_.clear();
  failure_ = text;
  try_later();
}

void RunningFile::try_later() {
  constexpr milliseconds first{1000}, longest{30'000};
  pause_ = std::clamp(2 * pause_, first, longest);
  next_ = Clock::now() + pause_;
}

void RunningFile::step() {
  if (!session_) {
    if (Clock::now() < next_) return;
    ++restarts_;
    return begin();
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

void RunningFile::end() {
  if (!session_) return;
  if (auto finished = session_->finish(); !finished) usdt::tools::print_error(kTool, finished.error());
  session_.reset();
  for (const auto& sink : sinks_)
    if (const auto why = sink->failure())
      usdt::tools::print_notice(
          kTool, fmt::format("{}: {}; what is missing there is counted as not_written", sink->name(), *why));
  sinks_.clear();
  notices_.clear();
}

FileState RunningFile::state() const {
  if (session_) return session_->traces() ? FileState::traces : FileState::waits;
  return waits_for_subject_ ? FileState::waits : FileState::fails;
}

std::optional<int> RunningFile::fd() {
  if (!session_) return std::nullopt;
  const auto fd = session_->fd();
  return fd ? std::optional(*fd) : std::nullopt;
}

}  // namespace usdt_agent
