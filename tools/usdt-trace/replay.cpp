// SPDX-License-Identifier: BSD-2-Clause
#include "replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "ending.hpp"
#include "ledger.hpp"
#include "notice.hpp"
#include "signals.hpp"
#include "sink.hpp"

namespace usdt_trace {
namespace {

bool is_patient(std::chrono::milliseconds) { return !end_asked_for(); }

/// Shows the events, as far as they are wanted and can be written.
usdt::Result<void> show_events(usdt::QuestionReplay& replay, const Flags& flags, Sink& sink) {
  constexpr std::uint64_t much = 1 << 20;
  while (!end_asked_for()) {
    const auto more = replay.step();
    if (!more) return usdt::fail(more.error());
    say_notices(flags, replay);
    if (!*more) return {};
    if (sink.output().pending() > much) sink.flush(is_patient);
    if (!sink.is_written()) return {};
  }
  return {};
}

/// One run from a recording to its exit code.
usdt::Result<int> show_recording(Flags flags, Sink sink) {
  auto replay = usdt::QuestionReplay::open(flags.question);
  if (!replay) return usdt::fail(replay.error());
  flags.question = replay->question();
  sink.show_by(line_output(replay->plan(), replay->printed(), flags, replay->surroundings(), sink.stream()));
  replay->begin(sink.output());
  say_notices(flags, *replay);
  catch_signals();
  if (auto shown = show_events(*replay, flags, sink); !shown) return usdt::fail(shown.error());
  sink.flush(is_patient);
  const Ledger ledger(flags, replay->plan(),
                      {.summary = replay->summary(),
                       .shown = replay->given(),
                       .not_shown = replay->beyond(),
                       .followed = true,
                       .nothing_left = false});
  if (sink.is_written()) {
    replay->finish();
    sink.output().summary(ledger.summary());
    sink.flush(is_patient);
  }
  ledger.print();
  if (sink.failed()) return run_time_failure;
  if (flags.strict && (ledger.has_losses() || sink.output().unreadable() > 0)) return strict_failure;
  return ledger.summary().cut.empty() ? success : run_time_failure;
}

}  // namespace

int replay(const std::vector<Flags>& questions) {
  ignore_write_signals();
  auto sink = Sink::open(questions.front().output.file);
  if (!sink) return complain(sink.error(), questions.front());
  int worst = success;
  for (const Flags& flags : questions) {
    if (std::error_code unknown;
        !flags.output.file.empty() &&
        std::filesystem::equivalent(flags.output.file, flags.question.recording.replay, unknown))
      return complain(
          {usdt::ErrorKind::invalid_argument, fmt::format("--output {} is the recording itself", flags.output.file)},
          flags);
    auto code = show_recording(flags, sink->sibling());
    if (!code && !flags.question.name.empty()) code = usdt::fail(code.error().within(flags.script.place));
    worst = std::max(worst, code ? *code : complain(code.error(), flags));
  }
  return worst;
}

}  // namespace usdt_trace
