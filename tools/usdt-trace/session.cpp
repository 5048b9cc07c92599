// SPDX-License-Identifier: BSD-2-Clause
#include "session.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "common/report.hpp"
#include "ending.hpp"
#include "notice.hpp"
#include "question.hpp"
#include "run.hpp"
#include "signals.hpp"

namespace usdt_trace {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLongestWait{50};

/// Questions that are asked at once, each by a tracer of its own.
class Session {
 public:
  explicit Session(const std::vector<Flags>& questions) : run_(questions.front()) {
    for (const Flags& flags : questions) questions_.push_back(std::make_unique<Question>(flags, run_));
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  /// Followers have threads, which wake the first tracer.
  ~Session() { run_.arrival().wakes(nullptr); }

  usdt::Result<int> run() {
    usdt::tools::set_patience([this](milliseconds) { return run_.patient(); });
    if (auto opened = open(); !opened) return usdt::fail(opened.error());
    if (auto held = run_.hold_command(); !held) return usdt::fail(held.error());
    if (auto found = run_.find_subjects(); !found) return usdt::fail(found.error());
    if (run_.over()) {
      finish();
      return nothing_came();
    }
    if (auto planned = plan(); !planned) return usdt::fail(planned.error());
    if (auto attached = attach(); !attached) return usdt::fail(attached.error());
    if (cut_short_) {
      finish();
      return first_tracer_ ? exit_code() : nothing_came();
    }
    if (auto released = run_.release_command(); !released) return usdt::fail(released.error());
    run_.begin_time();
    auto traced = trace();
    finish();
    if (!traced) return usdt::fail(traced.error());
    return first_tracer_ ? exit_code() : nothing_came();
  }

 private:
  usdt::Result<void> open() {
    const Sink* shown = nullptr;
    for (const auto& question : questions_) {
      if (auto opened = question->open(shown); !opened) return about(*question, opened.error());
      if (auto apart = check_apart(*question); !apart) return about(*question, apart.error());
      if (shown == nullptr) shown = question->shown();
    }
    return {};
  }

  /// Two would write over each other, whatever names they have for the file.
  usdt::Result<void> check_apart(const Question& question) {
    for (const Sink& sink : question.sinks()) {
      const auto file = sink.stream().file();
      if (!file) continue;
      const auto [known, is_new] = written_files_.try_emplace(*file, &sink);
      if (!is_new && &known->second->stream() != &sink.stream())
        return usdt::fail(usdt::ErrorKind::invalid_argument,
                          fmt::format("{} and {} are one file: output and recording need one each",
                                      known->second->name(), sink.name()));
    }
    return {};
  }

  /// Those that there is something for begin, others wait.
  usdt::Result<void> plan() {
    for (const auto& question : questions_) {
      auto planned = question->plan();
      if (!planned) return about(*question, planned.error());
      if (*planned) ready_.push_back(question.get());
    }
    return {};
  }

  usdt::Result<void> attach() {
    for (Question* question : std::exchange(ready_, {})) {
      const auto attached = question->attach();
      if (!attached && attached.error().kind == usdt::ErrorKind::stopped) {
        cut_short_ = true;
        return {};
      }
      if (!attached) return about(*question, attached.error());
      if (!*attached) continue;
      if (!std::exchange(first_tracer_, true)) run_.arrival().wakes(&question->tracer());
      if (auto begun = question->begin_following(); !begun) return about(*question, begun.error());
      question->tell_attached();
    }
    // From here on only who waits for servers of debug files has to be told when it is over.
    if (std::ranges::none_of(questions_, [](const auto& each) { return each->flags().question.points.debuginfod; }))
      run_.stop_telling();
    return {};
  }

  /// Time runs from when something is traced.
  usdt::Result<void> attach_what_came() {
    for (const auto& question : questions_) {
      if (!question->waits()) continue;
      auto came = question->look();
      if (!came) return about(*question, came.error());
      if (*came) ready_.push_back(question.get());
    }
    const bool first = !first_tracer_ && !ready_.empty();
    if (auto attached = attach(); !attached) return attached;
    if (first) run_.begin_time();
    return {};
  }

  /// A script says which of its questions it is.
  static tl::unexpected<usdt::Error> about(const Question& question, const usdt::Error& error) {
    const Flags& flags = question.flags();
    return usdt::fail(flags.question.name.empty() ? error : error.within(flags.script.place));
  }

  /// The exit code of a trace that waited, and had nothing to trace.
  usdt::Result<int> nothing_came() { return end_asked_for() ? success : run_.command_ended().value_or(success); }

  /// A command goes on to its end, whether there is anything to see or not.
  [[nodiscard]] bool goes_on() const {
    return std::ranges::any_of(questions_, [](const auto& question) { return !question->has_enough(); }) &&
           (run_.command() ||
            std::ranges::any_of(questions_, [](const auto& question) { return !question->nothing_left(); }));
  }

  usdt::Result<void> trace() {
    while (!run_.over() && goes_on() && !run_.target_ended()) {
      if (auto attached = attach_what_came(); !attached) return attached;
      if (!first_tracer_) {
        run_.arrival().wait();
        continue;
      }
      const auto left = std::chrono::ceil<milliseconds>(run_.end_of_time() - Clock::now());
      const milliseconds wait = std::clamp(left, milliseconds(0), kLongestWait);
      const bool alone = questions_.size() == 1;
      std::size_t events = 0;
      for (const auto& question : questions_) {
        if (question->finished() || question->waits()) continue;
        auto taken = question->step(alone ? wait : milliseconds(0));
        if (!taken) return about(*question, taken.error());
        events += *taken;
        if (!alone && question->has_enough()) question->finish();
      }
      if (!alone && events == 0) wait_for_any(wait);
    }
    return {};
  }

  /// Until one of the tracers has something to take. Where a descriptor cannot be had, it is looked for soon.
  void wait_for_any(milliseconds wait) {
    std::vector<pollfd> all;
    for (const auto& question : questions_) {
      if (question->finished() || question->waits()) continue;
      const auto fd = question->tracer().fd();
      if (fd)
        all.push_back({.fd = *fd, .events = POLLIN, .revents = 0});
      else
        wait = std::min(wait, milliseconds(1));
    }
    ::poll(all.data(), all.size(), static_cast<int>(wait.count()));
  }

  void finish() {
    for (const auto& question : questions_) {
      if (question->waits())
        question->finish_without_trace(cut_short_ ? "ended before everything was attached: nothing was traced"
                                                  : "nothing came that matches");
      else if (!question->finished())
        question->finish();
    }
    own_code_ = run_.command_ended();
    run_.stop_command();
  }

  [[nodiscard]] int exit_code() {
    bool failed = false;
    bool nothing_left = true;
    bool losses = false;
    for (const auto& question : questions_) {
      // Those of a script show what they find in one place, which fails for all of them.
      failed = failed || question->failed();
      losses |= question->flags().strict && !question->waits() && question->has_losses();
      nothing_left &= question->nothing_left();
    }
    if (failed) return run_time_failure;
    if (losses) return strict_failure;
    if (nothing_left && !run_.command()) return run_time_failure;
    return end_asked_for() ? success : own_code_.value_or(success);
  }

  Run run_;
  std::vector<std::unique_ptr<Question>> questions_;
  std::map<std::pair<dev_t, ino_t>, const Sink*> written_files_;  ///< by any question
  std::vector<Question*> ready_;                                  ///< to be attached
  bool first_tracer_ = false;                                     ///< some question is traced
  bool cut_short_ = false;                                        ///< it was to end while something was being attached
  std::optional<int> own_code_;                                   ///< of the command, where it ended by itself
};

}  // namespace

int run(const std::vector<Flags>& questions) {
  ignore_write_signals();
  Session session(questions);
  auto code = session.run();
  return code ? *code : complain(code.error(), questions.front());
}

}  // namespace usdt_trace
