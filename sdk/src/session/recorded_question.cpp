// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/recorded_question.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "parsers/declared.hpp"

namespace usdt {
inline namespace v1 {
namespace {

// Names of properties.
constexpr std::string_view kPrint = "print.", kPrintOf = "print_of.", kWhere = "where", kKernelStack = "kstack",
                           kUserStack = "ustack", kKernelStackInLists = "kstack_in_lists",
                           kUserStackInLists = "ustack_in_lists", kSample = "sample", kMaxRate = "max_rate",
                           kMaxOverhead = "max_overhead", kLast = "last", kBegan = "began";

std::string text_of(const PrintList& list) {
  std::vector<std::string> items;
  for (const PrintItem& item : list)
    items.push_back(item.called ? fmt::format("{} as {}", item.label, parsers::declared_text(*item.called))
                                : item.label);
  return fmt::format("{}", fmt::join(items, ", "));
}

/// The number behind `prefix`; nothing: `name` is another one.
std::optional<std::size_t> number_behind(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? std::optional(number) : std::nullopt;
}

/// 0: there is none.
double share_in(const Recording& recording, std::string_view name) {
  const std::string text(recording.property(name).value_or(""));
  double share = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), share);
  const bool good = error == std::errc() && share > 0 && share <= TraceOptions::kMostOverhead;
  return good ? share : 0;
}

std::uint32_t number_in(const Recording& recording, std::string_view name) {
  return static_cast<std::uint32_t>(number_behind(recording.property(name).value_or(""), "").value_or(0));
}

}  // namespace

RecordingInfo recording_info(const Question& question, const Printed& printed, std::string made_by) {
  RecordingInfo info{.made_by = std::move(made_by)};
  const auto add = [&](std::string name, std::string text) {
    info.properties.emplace_back(std::move(name), std::move(text));
  };
  for (std::size_t n = 0; n < printed.lists.size(); ++n) add(fmt::format("{}{}", kPrint, n), text_of(printed.lists[n]));
  if (question.where) add(std::string(kWhere), question.where->text);
  add(std::string(kBegan), fmt::format("{}", question.began));
  if (question.stacks.kernel_depth > 0) add(std::string(kKernelStack), fmt::format("{}", question.stacks.kernel_depth));
  if (question.stacks.user_depth > 0) add(std::string(kUserStack), fmt::format("{}", question.stacks.user_depth));
  if (question.stacks.kernel_in_lists) add(std::string(kKernelStackInLists), "1");
  if (question.stacks.user_in_lists) add(std::string(kUserStackInLists), "1");
  if (question.limits.sample > 1) add(std::string(kSample), fmt::format("{}", question.limits.sample));
  if (question.limits.max_rate > 0) add(std::string(kMaxRate), fmt::format("{}", question.limits.max_rate));
  if (question.limits.max_overhead > 0) add(std::string(kMaxOverhead), fmt::format("{}", question.limits.max_overhead));
  if (question.recording.last) add(std::string(kLast), fmt::format("{}", question.recording.last->count()));
  return info;
}

std::vector<std::pair<std::string, std::string>> list_properties(const Printed& printed, std::size_t first) {
  std::vector<std::pair<std::string, std::string>> properties;
  for (std::size_t probe = first; probe < printed.of_probe.size(); ++probe)
    if (const ListNumber list = printed.of_probe[probe]; list != 0)
      properties.emplace_back(fmt::format("{}{}", kPrintOf, probe), fmt::format("{}", list));
  return properties;
}

RecordedLedger recorded_ledger(const SessionSummary& summary) {
  RecordedLedger ledger{.missed = summary.missed,
                        .missed_hits = summary.missed_hits,
                        .undecided = summary.undecided,
                        .skipped = summary.skipped,
                        .changes = summary.changed};
  ledger.probes.assign(summary.probes.begin(), summary.probes.end());
  return ledger;
}

SessionSummary summary_of(const RecordedLedger& ledger) {
  SessionSummary summary{.skipped = ledger.skipped,
                         .missed = ledger.missed,
                         .changed = ledger.changes,
                         .missed_hits = ledger.missed_hits,
                         .undecided = ledger.undecided};
  for (const ProbeCounts& counts : ledger.probes) summary.probes.push_back({counts});
  return summary;
}

Result<RecordedQuestion> recorded_question(const Recording& recording, std::string_view option_prefix) {
  RecordedQuestion recorded;
  recorded.printed.of_probe.resize(recording.plan()->probes.size());
  for (const auto& [name, text] : recording.info().properties) {
    if (number_behind(name, kPrint)) {
      auto list = text.empty() ? PrintList() : parse_print_list(text, option_prefix);
      if (!list) return fail(list.error().within("the recording"));
      recorded.printed.lists.push_back(std::move(*list));
    } else if (const auto probe = number_behind(name, kPrintOf); probe && *probe < recorded.printed.of_probe.size()) {
      recorded.printed.of_probe[*probe] = static_cast<ListNumber>(number_behind(text, "").value_or(0));
    }
  }
  if (recorded.printed.lists.empty()) recorded.printed.lists.emplace_back();
  for (ListNumber& list : recorded.printed.of_probe)
    if (list >= recorded.printed.lists.size()) list = 0;
  recorded.where = recording.property(kWhere).value_or("");
  recorded.stacks.kernel_depth = number_in(recording, kKernelStack);
  recorded.stacks.user_depth = number_in(recording, kUserStack);
  recorded.stacks.kernel_in_lists = number_in(recording, kKernelStackInLists) > 0;
  recorded.stacks.user_in_lists = number_in(recording, kUserStackInLists) > 0;
  recorded.limits.sample = std::max(number_in(recording, kSample), 1U);
  recorded.limits.max_rate = number_in(recording, kMaxRate);
  if (const auto last = number_behind(recording.property(kLast).value_or(""), ""))
    recorded.last = std::chrono::nanoseconds(static_cast<std::int64_t>(std::min<std::size_t>(*last, INT64_MAX)));
  recorded.limits.max_overhead = share_in(recording, kMaxOverhead);
  recorded.began = number_behind(recording.property(kBegan).value_or(""), "").value_or(0);
  return recorded;
}

}  // namespace v1
}  // namespace usdt
