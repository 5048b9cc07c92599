// SPDX-License-Identifier: BSD-2-Clause
#include "export/asked_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "export/table_words.hpp"

namespace usdt::exports {
namespace {

std::string points_text(const AskedPoints& points) {
  const auto names = [](const std::vector<PointPattern>& patterns) {
    std::vector<std::string> texts;
    for (const PointPattern& each : patterns) texts.push_back(to_string(each));
    return fmt::format("{}", fmt::join(texts, ", "));
  };
  return points.ends.empty() ? names(points.patterns)
                             : fmt::format("{} ~~ {}", names(points.patterns), names(points.ends));
}

/// The keys of a table that are shown; a bucket is what its histogram is of.
std::string keys_text(const View& view) {
  std::vector<std::string_view> keys;
  for (const Expression& key : view.question->keys) keys.push_back(key.text);
  if (view.folds_last_key() && !keys.empty()) keys.pop_back();
  return fmt::format("{}", fmt::join(keys, ", "));
}

std::string shown_text(const View& view) {
  if (view.count_only) return "hits by probe";
  if (view.in_flight && !view.question)
    return fmt::format("the {} calls or spans that have been open longest", view.slowest);
  if (view.slowest > 0) return fmt::format("the {} slowest", view.slowest);
  if (view.question == nullptr) return {};
  if (view.heat_map) return fmt::format("heat map of {}", view.value);
  if (view.histogram != Histogram::none) return fmt::format("histogram of {}", view.value);
  std::vector<std::string> numbers;
  for (const RowNumber each : view.shown) numbers.push_back(header_of(each, view));
  return fmt::format("{}{}", fmt::join(numbers, ", "), view.in_flight ? " of what has not ended" : "");
}

std::string processes_text(const AskedProcesses& processes) {
  std::vector<std::string> parts;
  if (!processes.pids.empty()) parts.push_back(fmt::format("pid {}", fmt::join(processes.pids, ", ")));
  if (processes.children) parts.emplace_back("their children");
  if (!processes.command.empty()) parts.push_back(fmt::format("{}", fmt::join(processes.command, " ")));
  for (const std::string& each : processes.cgroups) parts.push_back("cgroup " + each);
  for (const std::string& each : processes.containers) parts.push_back("container " + each);
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string limits_text(const AskedLimits& limits) {
  std::vector<std::string> parts;
  if (limits.seconds) parts.push_back(fmt::format("{:g} s", *limits.seconds));
  if (limits.max_events != UINT64_MAX) parts.push_back(fmt::format("at most {} events", limits.max_events));
  if (limits.sample > 1) parts.push_back(fmt::format("one in {} hits", limits.sample));
  if (limits.max_rate > 0) parts.push_back(fmt::format("at most {} events a second", limits.max_rate));
  if (limits.max_overhead > 0) parts.push_back(fmt::format("overhead of at most {:g} %", limits.max_overhead * 100));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string labels_text(const PrintList& list) {
  std::vector<std::string_view> labels;
  for (const PrintItem& item : list) labels.push_back(item.name());
  return fmt::format("{}", fmt::join(labels, ", "));
}

std::string values_text(const Prints& prints, const Printed& printed) {
  if (prints.empty() && printed.lists.size() == 1) return labels_text(printed.lists.front());
  std::string text = labels_text(prints.rest);
  for (const ProbePrint& each : prints.for_probes)
    text.append(fmt::format("{}{}={}", text.empty() ? "" : "; ", each.probe, labels_text(each.list)));
  return text;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> asked_text(const Question& question, const std::string& probes,
                                                            const Printed& printed) {
  std::vector<std::pair<std::string, std::string>> lines;
  const auto add = [&](std::string_view what, std::string text) {
    if (!text.empty()) lines.emplace_back(what, std::move(text));
  };
  add("recording", question.recording.replay);
  add("probes", question.points.patterns.empty() ? probes : points_text(question.points));
  add("processes", processes_text(question.processes));
  if (question.where) add("where", question.where->text);
  add("values", values_text(question.values.print, printed));
  if (question.view.question) add("by", keys_text(question.view));
  add("shown", shown_text(question.view));
  add("limits", limits_text(question.limits));
  return lines;
}

}  // namespace usdt::exports
