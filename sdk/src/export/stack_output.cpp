// SPDX-License-Identifier: BSD-2-Clause
#include "export/stack_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/counted.hpp"
#include "export/frames.hpp"
#include "export/table_output.hpp"
#include "export/table_words.hpp"
#include "io/escape.hpp"

namespace usdt::exports {

bool FoldedStacks::add(std::string stack, double weight) {
  const auto known = stacks_.find(stack);
  if (known != stacks_.end()) {
    known->second += weight;
    return true;
  }
  const std::size_t bytes = stack.size() + kNode;
  if (bytes > room_) return false;
  room_ -= bytes;
  stacks_.emplace(std::move(stack), weight);
  return true;
}

StackOutput::StackOutput(const AnswerStart& start, const OutputPlace& place)
    : Output(start, place),
      view_(start.question.view),
      kernel_(start.question.stacks.kernel_depth > 0),
      user_(start.question.stacks.user_depth > 0) {}

void StackOutput::look_up(const AttachPlan& plan, std::size_t /*probes*/) {
  kept_.resize(plan.probes.size());
  left_out_.resize(plan.probes.size());
}

void StackOutput::event(const Event& event) {
  const std::uint32_t probe = event.site().probe.value;
  const StacksOfEvent stacks{.user = user_ ? &around_.user_stack() : nullptr,
                             .kernel = kernel_ && !event.probe().file ? &around_.kernel_stack() : nullptr};
  for (const Result<Stack>* stack : {stacks.user, stacks.kernel})
    if (stack != nullptr && !*stack) ++unreadable_;
  ++(add_event(event, stacks) ? kept_ : left_out_)[probe];
}

void StackOutput::give_up() {
  Output::give_up();
  for (std::size_t n = 0; n < kept_.size(); ++n) not_written_[n] += std::exchange(kept_[n], 0);
}

std::string StackOutput::title() const {
  constexpr std::size_t kMost = 3;
  const std::size_t probes = plan().probes.size();
  const ShortNames names(plan(), probes);
  std::string text;
  for (std::size_t n = 0; n < std::min(probes, kMost); ++n) text.append(n > 0 ? ", " : "").append(names[n]);
  return probes > kMost ? fmt::format("{} and {}", text, more_text(probes - kMost)) : text;
}

std::string ledger_text(const SessionSummary& summary) {
  const Account total = summary.total();
  return fmt::format("{} hits; {} lost", total.hits, total.lost());
}

FoldedStackOutput::FoldedStackOutput(const AnswerStart& start, const OutputPlace& place)
    : StackOutput(start, place), tell_(place.shared.options.tell), stacks_(kMostStackBytes) {}

/// The process's stack, and on top of it the kernel's.
std::string folded_text(const StacksOfEvent& stacks) {
  std::string text;
  for (const Result<Stack>* stack : {stacks.user, stacks.kernel}) {
    if (stack == nullptr) continue;
    const std::string frames =
        *stack ? folded_text(**stack, FoldedMarks::jit) : folded_word(fmt::format("[{}]", stack->error().message));
    if (!frames.empty()) text.append(text.empty() ? "" : ";").append(io::escaped(frames));
  }
  return text.empty() ? "[no stack]" : text;
}

FoldedTable folded_table(const ShownTable& shown) {
  FoldedTable folded;
  for (const auto& [text, row] : folded_rows(shown, FoldedMarks::jit)) {
    const double real = row.real_sum.value();
    const bool has_width = shown.table.real_sums ? std::isfinite(real) && real >= 0 : row.sum >= 0;
    if (has_width)
      folded.rows.push_back({text, shown.table.real_sums ? fmt::format("{:.0f}", real) : decimal_text(row.sum)});
    else
      ++folded.not_drawn;
  }
  return folded;
}

std::string not_drawn_text(std::size_t stacks) {
  return fmt::format(
      "the sums of {} are below 0 or no numbers: a flame graph does not have them; --by ustack without "
      "--export shows them",
      counted(stacks, "stack"));
}

bool FoldedStackOutput::add_event(const Event& event, const StacksOfEvent& stacks) {
  return stacks_.add(folded_text(stacks), event.weight());
}

void FoldedStackOutput::add_rows(const ArrangedTable& look) {
  FoldedTable folded = folded_table({view(), plan(), look.table, look.rows});
  rows_ = std::move(folded.rows);
  if (folded.not_drawn > 0 && tell_) tell_(not_drawn_text(folded.not_drawn));
}

void FoldedStackOutput::write_all(const SessionSummary& summary) {
  for (const auto& [text, weight] : stacks_.all()) rows_.push_back({text, fmt::format("{}", std::llround(weight))});
  write_stacks(rows_, summary);
}

}  // namespace usdt::exports
