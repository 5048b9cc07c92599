// SPDX-License-Identifier: BSD-2-Clause
// Options about where events go to and come from, and about how large they may be.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <memory>

#include "session/option_names.hpp"
#include "session/option_rows.hpp"

namespace usdt::session {
namespace {

constexpr std::string_view kFiles = "Files and formats";

Result<void> take_last(QuestionDraft& draft, const SetOption& set) {
  AskedRecording& recording = draft.question.recording;
  if (recording.file.empty()) return refuse("--last goes with --record FILE, which is written at the end", set.prefix);
  const auto time = read_seconds(set.value());
  constexpr double most = 24 * 60 * 60;
  if (!time || !(*time >= 1e-9 && *time <= most))
    return set.wrong(fmt::format("\"{}\" is no time up to 24h, such as 10 (seconds), 500ms or 5m", set.value()));
  recording.last = std::chrono::nanoseconds(std::llround(*time * 1e9));
  return {};
}

Result<void> take_dump_on(QuestionDraft& draft, const SetOption& set) {
  AskedRecording& recording = draft.question.recording;
  if (!recording.last) return refuse("--dump-on goes with --last", set.prefix);
  if (set.value() == "exit") return {};
  auto dump_on = parse_expression(set.value());
  if (!dump_on) return fail(dump_on.error().within(set.name()));
  recording.dump_on = std::make_shared<const Expression>(std::move(*dump_on));
  return {};
}

/// The rows about recordings.
std::vector<OptionRow> options_of_recordings() {
  return {
      {{.name = "record",
        .group = kFiles,
        .kind = OptionKind::text,
        .value_name = "FILE",
        .description =
            "Write the events to FILE, compressed, instead of showing them (with -o both): --replay shows them, in any "
            "way they could have been shown, on any machine; what was written can be read however it ends",
        .scope = OptionScope::question},
       into([](QuestionDraft & draft) -> auto& { return draft.question.recording.file; })},
      {{.name = "last",
        .group = kFiles,
        .kind = OptionKind::text,
        .value_name = "TIME",
        .description =
            "With --record: keep only the events of the last while (10s), in at most 256 MiB of memory, and write them "
            "when the trace ends",
        .scope = OptionScope::question},
       take_last},
      {{.name = "dump-on",
        .group = kFiles,
        .kind = OptionKind::text,
        .value_name = "EXPR|exit",
        .description =
            "With --last: end the trace when this holds for an event (as --where has it); exit: not before it ends by "
            "itself",
        .scope = OptionScope::question},
       take_dump_on},
      {{.name = "replay",
        .group = kFiles,
        .kind = OptionKind::text,
        .value_name = "FILE",
        .description =
            "Show what --record wrote to FILE, as if it happened now: with --print, --where, --count, --format, "
            "--max-events",
        .scope = OptionScope::session,
        .of_replay = true},
       into([](QuestionDraft & draft) -> auto& { return draft.question.recording.replay; })},
  };
}

/// The rows about how much room events have.
std::vector<OptionRow> options_of_sizes() {
  return {
      {{.name = "string-size",
        .short_name = "Z",
        .group = kFiles,
        .kind = OptionKind::number,
        .value_name = "N",
        .description = "Longest string in bytes",
        .usual_value = fmt::format("{}", AskedValues().string_size),
        .least = 1,
        .most = 65536},
       into([](QuestionDraft & draft) -> auto& { return draft.question.values.string_size; })},
      {{.name = "ring-size",
        .group = kFiles,
        .kind = OptionKind::number,
        .value_name = "MIB",
        .description = fmt::format("Event ring in MiB; through usdt-broker, which bounds what a user gets within an "
                                   "hour, {} unless told",
                                   AskedAttaching::kUsualRingThroughBroker),
        .usual_value = fmt::format("{}", AskedAttaching::kUsualRing),
        .least = 1,
        .most = 1024},
       into([](QuestionDraft & draft) -> auto& { return draft.question.attaching.ring_megabytes; })},
  };
}

}  // namespace

std::vector<OptionRow> options_of_files() { return join_rows(options_of_recordings(), options_of_sizes()); }

}  // namespace usdt::session
