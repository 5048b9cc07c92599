// SPDX-License-Identifier: BSD-2-Clause
#include "session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "broker.hpp"
#include "child.hpp"
#include "common/report.hpp"
#include "ending.hpp"
#include "notice.hpp"
#include "notices.hpp"
#include "signals.hpp"
#include "usdt/sink.hpp"

namespace usdt_trace {
namespace {

using Clock = std::chrono::steady_clock;

/// One question with those who take its answers.
struct Asked {
  const Flags& flags;
  std::vector<std::unique_ptr<usdt::Sink>> sinks = {};
  std::unique_ptr<Notices> notices = {};

  [[nodiscard]] bool has_losses() const {
    if (!flags.strict || !notices->how_it_ended()) return false;
    return notices->how_it_ended()->losses ||
           std::ranges::any_of(sinks, [](const auto& sink) { return sink->unreadable() > 0; });
  }
};

/// The questions of one command line, from what they write to until it ends.
class Run {
 public:
  explicit Run(const std::vector<Flags>& questions) : first_(questions.front()) {
    for (const Flags& flags : questions) asked_.push_back({flags});
  }

  usdt::Result<int> run() {
    if (auto opened = open(); !opened) return usdt::fail(opened.error());
    auto broker = find_broker(first_);
    if (!broker) return usdt::fail(broker.error());
    if (auto held = hold_command(); !held) return usdt::fail(held.error());
    usdt::FeatureChoice features = first_.features;
    if (*broker) features.known = (*broker)->features();
    usdt::Session session({.command = child_ ? child_->pid() : 0,
                           .features = std::move(features),
                           .broker = *broker,
                           .before_attaching = [this] { begin_holding(); }});
    session_ = &session;
    const EndsBySignal ends(session);
    usdt::tools::set_patience(patience_at_end());
    for (Asked& asked : asked_) {
      std::vector<usdt::AnswerConsumer*> consumers;
      for (const auto& sink : asked.sinks) consumers.push_back(sink.get());
      consumers.push_back(asked.notices.get());
      session.add(asked.flags.question, std::move(consumers),
                  asked.flags.question.name.empty() ? std::string() : asked.flags.script.place);
    }
    auto traced = trace(session);
    const std::optional<int> code = command_ended();  // of one that ended by itself
    if (child_) child_->stop(std::chrono::seconds(2));
    session_ = nullptr;
    if (!traced) return traced;
    return std::max(*traced, exit_code(session, code));
  }

 private:
  // --- before anything is traced ---
  usdt::Result<void> open() {
    for (Asked& asked : asked_) {
      if (asked.flags.dump_on_signal) catch_dump_signal();  // it may come before anything is traced
      if (auto opened = open_sinks(asked); !opened) return about(asked, opened.error());
      if (auto apart = check_apart(asked); !apart) return about(asked, apart.error());
      asked.notices = std::make_unique<Notices>(asked.flags, [this] { return command_ended().has_value(); });
    }
    return {};
  }

  /// Opens the sinks. The answers of a recorded trace are shown only if that is asked for.
  usdt::Result<void> open_sinks(Asked& asked) {
    const OutputPart& output = asked.flags.output;
    const std::string& recording = asked.flags.question.recording.file;
    std::vector<ExportPart> wanted;
    const bool is_exported =
        std::ranges::find(output.exports, kRecordFormat, &ExportPart::format) != output.exports.end();
    if (recording.empty() || !output.shown.file.empty() || is_exported) wanted.push_back(output.shown);
    if (!recording.empty() && !is_exported) wanted.push_back({std::string(kRecordFormat), recording});
    wanted.insert(wanted.end(), output.exports.begin(), output.exports.end());
    for (const ExportPart& each : wanted) {
      auto sink = open_sink(each, asked.flags);
      if (!sink) return usdt::fail(sink.error());
      asked.sinks.push_back(std::move(*sink));
    }
    return {};
  }

  /// Questions of a script that are shown in one place share it.
  usdt::Result<std::unique_ptr<usdt::Sink>> open_sink(const ExportPart& wanted, const Flags& flags) {
    for (const Asked& asked : asked_)
      for (const auto& sink : asked.sinks)
        if (&asked.flags != &flags && sink->format().name == wanted.format && sink->options().file == wanted.file &&
            sink->options().listen == wanted.listen)
          return sink->sibling();
    return usdt::Sink::open(wanted.format, {.file = wanted.file,
                                            .listen = wanted.listen,
                                            .wait_while_tracing = patience_while_tracing(),
                                            .wait_at_end = patience_at_end(),
                                            .label_width = flags.script.label_width,
                                            .counts_unreadable = flags.strict,
                                            .program = "usdt-trace " USDT_VERSION,
                                            .tell = [&flags](const std::string& text) { notice(flags, text); }});
  }

  /// Two would write over each other, whatever names they have for the file.
  usdt::Result<void> check_apart(const Asked& asked) {
    std::error_code unknown;
    const auto refuse = [](std::string text) { return usdt::fail(usdt::ErrorKind::invalid_argument, std::move(text)); };
    for (const auto& sink : asked.sinks) {
      const auto file = sink->file();
      if (!file) continue;
      if (std::filesystem::equivalent(sink->options().file, asked.flags.question.recording.replay, unknown))
        return refuse(fmt::format("{} is the recording itself", sink->name()));
      const auto [known, is_new] = written_files_.try_emplace(*file, sink.get());
      if (!is_new && !known->second->is_sibling_of(*sink))
        return refuse(fmt::format("{} and {} are one file: output and recording need one each", known->second->name(),
                                  sink->name()));
    }
    return {};
  }

  usdt::Result<void> hold_command() {
    const std::vector<std::string>& command = first_.question.processes.command;
    if (command.empty()) return {};
    auto program = usdt::find_program(command[0]);
    if (!program) return usdt::fail(program.error());
    auto child = Child::fork(*program, command);
    if (!child) return usdt::fail(child.error());
    child_.emplace(std::move(*child));
    return {};
  }

  /// From here on there is something to undo at the end.
  void begin_holding() const {
    catch_signals();
    for (const Asked& asked : asked_)
      if (asked.flags.question.following.hold_exec) ignore_stop_signals();
  }

  // --- the trace ---
  /// Returns the exit code of what failed without ending it.
  usdt::Result<int> trace(usdt::Session& session) {
    int worst = success;
    if (auto begun = session.begin(); !begun) return usdt::fail(begun.error());
    if (child_ && !session.over())
      if (auto released = child_->release(); !released)
        return usdt::fail(released.error().within(first_.question.processes.command[0]));
    while (!command_ended()) {
      constexpr std::chrono::milliseconds longest{50};
      const auto more = session.step(longest);
      if (more && !*more) break;
      if (more) continue;
      if (first_.question.recording.replay.empty()) {
        if (auto finished = session.finish(); !finished) usdt::tools::print_error("usdt-trace", finished.error());
        return usdt::fail(more.error());
      }
      worst = std::max(worst, complain(more.error(), first_));  // others read the recording anew
    }
    if (auto finished = session.finish(); !finished) usdt::tools::print_error("usdt-trace", finished.error());
    return worst;
  }

  [[nodiscard]] std::optional<int> command_ended() { return child_ ? child_->ended() : std::nullopt; }

  /// While the trace shall go on a reader is waited for, of course; then a second, in which one who is only slow takes
  /// what there is.
  [[nodiscard]] usdt::SinkPatience patience_while_tracing() {
    return [this](std::chrono::milliseconds) { return !over(); };
  }
  [[nodiscard]] usdt::SinkPatience patience_at_end() {
    return [this](std::chrono::milliseconds) {
      constexpr std::chrono::seconds grace{1};
      if (!over()) return true;
      if (!last_patience_) last_patience_ = Clock::now() + grace;
      return Clock::now() < *last_patience_;
    };
  }
  [[nodiscard]] bool over() const { return session_ != nullptr ? session_->over() : end_asked_for(); }

  // --- how it ended ---
  [[nodiscard]] int exit_code(const usdt::Session& session, std::optional<int> code_of_command) const {
    // Questions of a script show what they find in one place, which fails for all of them.
    if (std::ranges::any_of(asked_, has_failed)) return run_time_failure;
    if (std::ranges::any_of(asked_, &Asked::has_losses)) return strict_failure;
    const bool cut = std::ranges::any_of(
        asked_, [](const Asked& asked) { return asked.notices->how_it_ended() && asked.notices->how_it_ended()->cut; });
    if (cut || (session.has_nothing_left() && !child_)) return run_time_failure;
    return end_asked_for() ? success : code_of_command.value_or(success);
  }

  /// Whether output could not be written, which is said.
  static bool has_failed(const Asked& asked) {
    for (const auto& sink : asked.sinks) {
      const auto why = sink->failure();
      if (!why) continue;
      usdt::tools::print_notice(
          "usdt-trace", fmt::format("{}: {}; what is missing there is counted as not_written", sink->name(), *why));
      return true;
    }
    return false;
  }

  /// A script says which of its questions it is.
  static tl::unexpected<usdt::Error> about(const Asked& asked, const usdt::Error& error) {
    return usdt::fail(asked.flags.question.name.empty() ? error : error.within(asked.flags.script.place));
  }

  const Flags& first_;
  std::vector<Asked> asked_;
  std::map<std::pair<dev_t, ino_t>, const usdt::Sink*> written_files_;  ///< by any question
  std::optional<Child> child_;
  const usdt::Session* session_ = nullptr;
  std::optional<Clock::time_point> last_patience_;
};

}  // namespace

int run(const std::vector<Flags>& questions) {
  ignore_write_signals();
  Run run(questions);
  auto code = run.run();
  return code ? *code : complain(with_hint_at_broker(code.error(), questions.front()), questions.front());
}

}  // namespace usdt_trace
