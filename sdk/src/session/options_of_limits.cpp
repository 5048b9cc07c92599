// SPDX-License-Identifier: BSD-2-Clause
// Options about how much is enough, and about what keeps a trace cheap.
#include <fmt/format.h>

#include "session/option_rows.hpp"

namespace usdt::session {
namespace {

constexpr std::string_view kLimits = "Limits";

/// Returns the whole number that `text` is between `before` and `after`, from 1 to `most`.
std::optional<std::uint32_t> number_within(std::string_view text, std::string_view before, std::string_view after,
                                           std::uint32_t most) {
  if (text.size() < before.size() + after.size() || !text.starts_with(before) || !text.ends_with(after))
    return std::nullopt;
  text.remove_prefix(before.size());
  text.remove_suffix(after.size());
  const auto number = read_number<std::uint32_t>(text);
  return number && *number > 0 && *number <= most ? number : std::nullopt;
}

Result<void> take_sample(QuestionDraft& draft, const SetOption& set) {
  const auto sample = number_within(set.value(), "1/", "", TraceOptions::kMostSampled);
  if (!sample) return set.wrong(fmt::format("\"{}\" is not 1/N, N up to 1000000, such as 1/100", set.value()));
  draft.question.limits.sample = *sample;
  return {};
}

Result<void> take_max_rate(QuestionDraft& draft, const SetOption& set) {
  const auto rate = number_within(set.value(), "", "/s", TraceOptions::kMostRate);
  if (!rate) return set.wrong(fmt::format("\"{}\" is not N/s, N up to 10000000, such as 1000/s", set.value()));
  draft.question.limits.max_rate = *rate;
  return {};
}

/// Takes "5", "0.5", "5%".
Result<void> take_max_overhead(QuestionDraft& draft, const SetOption& set) {
  std::string_view text = set.value();
  if (text.ends_with('%')) text.remove_suffix(1);
  const double share = read_number<double>(text).value_or(0) / 100;
  if (!(share >= TraceOptions::kLeastOverhead && share <= TraceOptions::kMostOverhead))
    return set.wrong(fmt::format("\"{}\" is not a number of percent from 0.01 to 1000, such as 5", set.value()));
  draft.question.limits.max_overhead = share;
  return {};
}

/// The rows about what is enough.
std::vector<OptionRow> options_of_ends() {
  return {
      {{.name = "max-events",
        .short_name = "M",
        .group = kLimits,
        .kind = OptionKind::number,
        .value_name = "N",
        .description = "Stop after N events",
        .least = 1,
        .most = UINT64_MAX - 1,
        .scope = OptionScope::question,
        .of_replay = true},
       into([](QuestionDraft & draft) -> auto& { return draft.question.limits.max_events; })},
      {{.name = "duration",
        .short_name = "d",
        .group = kLimits,
        .kind = OptionKind::time,
        .value_name = "TIME",
        .description = "Stop after TIME: 10 (seconds), 500ms, 5m",
        .scope = OptionScope::session},
       into([](QuestionDraft & draft) -> auto& { return draft.question.limits.seconds; })},
  };
}

/// The rows about what is left out.
std::vector<OptionRow> options_of_guards() {
  return {
      {{.name = "sample",
        .group = kLimits,
        .kind = OptionKind::text,
        .value_name = "1/N",
        .description =
            "Look at one in N hits only, chosen by chance; counts and sums are multiplied by N, and are estimates "
            "then. Calls and spans are left out as a whole"},
       take_sample},
      {{.name = "max-rate",
        .group = kLimits,
        .kind = OptionKind::text,
        .value_name = "N/s",
        .description = "At most N events a second; how many were held back is told at the end"},
       take_max_rate},
      {{.name = "max-overhead",
        .group = kLimits,
        .kind = OptionKind::text,
        .value_name = "PERCENT",
        .description =
            "Slow the traced processes down by at most so many percent of their own processor time: what is hit too "
            "often is detached and attached again, some tenths of a second every one or two; counts are estimates "
            "then, and events say how many they stand for"},
       take_max_overhead},
  };
}

}  // namespace

std::vector<OptionRow> options_of_limits() { return join_rows(options_of_ends(), options_of_guards()); }

}  // namespace usdt::session
