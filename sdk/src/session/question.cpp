// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/question.hpp"

#include <algorithm>
#include <utility>

#include "session/begun_expressions.hpp"
#include "session/split_condition.hpp"

namespace usdt {
inline namespace v1 {
namespace {

void name_once(std::vector<pid_t>& pids) {
  std::vector<pid_t> once;
  for (const pid_t pid : pids)
    if (std::ranges::find(once, pid) == once.end()) once.push_back(pid);
  pids = std::move(once);
}

/// Bytes that a value needs which is asked for by its size; 0: it is not.
std::uint64_t size_of(const PrintItem& item) {
  if (item.value.steps.empty()) return 0;
  constexpr std::uint64_t longest_address = 16;
  const PathStep& last = item.value.steps.back();
  if (last.kind == PathStep::Kind::bytes) return last.index;
  return last.kind == PathStep::Kind::address ? longest_address : 0;
}

/// Returns how long a text among keys can be at most, which share the room.
std::uint32_t longest_key(const TableQuestion& table) {
  const auto texts =
      std::ranges::count(table.keys, Operator::text_of, [](const Expression& key) { return key.root.op; });
  return table.key_bytes / std::max(static_cast<std::uint32_t>(texts), 1U);
}

/// Gives room to what is asked for by its size, however short texts may be, and to texts that are long keys.
void make_room(AskedValues& values, const View& view) {
  const bool long_keys = view.question && view.question->key_bytes > TableQuestion::kMostKeyBytes;
  if (long_keys) values.string_size = std::max(values.string_size, longest_key(*view.question));
  const auto make_room_for = [&](const PrintList& list) {
    constexpr std::uint64_t most = 65536;
    for (const PrintItem& item : list)
      values.string_size = std::max(values.string_size, static_cast<std::uint32_t>(std::min(size_of(item), most)));
  };
  make_room_for(values.print.rest);
  for (const ProbePrint& print : values.print.for_probes) make_room_for(print.list);
}

/// Takes stacks that lists name, for these alone where nobody asks for them otherwise.
void take_listed_stacks(const Prints& print, AskedStacks& stacks) {
  stacks.kernel_in_lists = stacks.kernel_depth == 0 && print.has_word(HitField::kstack);
  stacks.user_in_lists = stacks.user_depth == 0 && print.has_word(HitField::ustack);
  if (stacks.kernel_in_lists) stacks.kernel_depth = AskedStacks::kUsualKernelDepth;
  if (stacks.user_in_lists) stacks.user_depth = AskedStacks::kUsualUserDepth;
}

/// Chooses who makes the table of a trace: not the kernel where stacks are keys that it does not take.
void choose_rows(const Question& question, View& view) {
  const AskedStacks& stacks = question.stacks;
  const bool other_stacks =
      view.has_stacks() && (!question.points.ends.empty() || stacks.user_depth > 0 || stacks.kernel_depth > 0);
  const bool long_keys = view.question && view.question->key_bytes > TableQuestion::kMostKeyBytes;
  view.of_events = view.question && !view.in_flight &&
                   (other_stacks || long_keys || view.variance || session::asks_events(question));
}

/// Takes the stacks that are keys of a table which is not the kernel's.
void take_stacks_of_keys(const View& view, AskedStacks& stacks) {
  if (!view.makes_rows()) return;
  if (view.user_stacks && stacks.user_depth == 0) stacks.user_depth = AskedStacks::kUsualUserDepth;
  if (view.kernel_stacks && stacks.kernel_depth == 0) stacks.kernel_depth = AskedStacks::kUsualKernelDepth;
}

}  // namespace

std::vector<PointPattern> all_patterns(const Question& question) {
  auto patterns = question.points.patterns;
  patterns.insert(patterns.end(), question.points.ends.begin(), question.points.ends.end());
  return patterns;
}

bool all_in_kernel(const Question& question) {
  const auto& patterns = question.points.patterns;
  return !patterns.empty() && std::ranges::all_of(patterns, [](const PointPattern& pattern) {
    return std::holds_alternative<KernelPattern>(pattern);
  });
}

void begin_question(Question& question, std::uint64_t nanoseconds) {
  question.began = nanoseconds;
  question.where = session::begun_at(question.where, nanoseconds);
  question.recording.dump_on = session::begun_at(question.recording.dump_on, nanoseconds);
  question.view.variance = session::begun_at(question.view.variance, nanoseconds);
  session::begin_list(question.values.print.rest, nanoseconds);
  for (ProbePrint& print : question.values.print.for_probes) session::begin_list(print.list, nanoseconds);
  if (!question.view.question) return;
  auto table = std::make_shared<TableQuestion>(*question.view.question);
  for (Expression& key : table->keys) key.began = nanoseconds;
  if (table->value) table->value->began = nanoseconds;
  question.view.question = std::move(table);
}

void complete_question(Question& question) {
  name_once(question.processes.pids);
  make_room(question.values, question.view);
  if (!question.recording.replay.empty()) return;
  take_listed_stacks(question.values.print, question.stacks);
  choose_rows(question, question.view);
  take_stacks_of_keys(question.view, question.stacks);
}

}  // namespace v1
}  // namespace usdt
