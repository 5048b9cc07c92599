// SPDX-License-Identifier: BSD-2-Clause
#include "export/stack_output.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/counted.hpp"
#include "export/frames.hpp"
#include "export/table_output.hpp"
#include "export/table_words.hpp"
#include "io/escape.hpp"

namespace usdt::exports {
namespace {

/// Events' stacks are kept folded until the end, in so many bytes.
constexpr std::size_t kMostStackBytes = 64U << 20;

}  // namespace

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
      user_(start.question.stacks.user_depth > 0),
      tell_(place.shared.options.tell),
      stacks_(kMostStackBytes) {}

void StackOutput::look_up(const AttachPlan& plan, std::size_t /*probes*/) {
  kept_.resize(plan.probes.size());
  left_out_.resize(plan.probes.size());
}

void StackOutput::event(const Event& event) {
  const std::uint32_t probe = event.site().probe.value;
  ++(stacks_.add(stack_of(event), event.weight()) ? kept_ : left_out_)[probe];
}

/// The process's stack, and on top of it the kernel's.
std::string StackOutput::stack_of(const Event& event) {
  std::string text;
  if (user_) add(text, around_.user_stack());
  if (kernel_ && !event.probe().file) add(text, around_.kernel_stack());
  return text.empty() ? "[no stack]" : text;
}

void StackOutput::add(std::string& text, const Result<Stack>& stack) {
  if (!stack) ++unreadable_;
  const std::string frames =
      stack ? folded_text(*stack, FoldedMarks::jit) : folded_word(fmt::format("[{}]", stack.error().message));
  if (!frames.empty()) text.append(text.empty() ? "" : ";").append(io::printable(frames));
}

void StackOutput::table(const ArrangedTable& look) {
  if (!look.last) return;
  std::size_t not_drawn = 0;
  for (const auto& [text, row] : folded_rows({view_, plan(), look.table, look.rows}, FoldedMarks::jit)) {
    const double real = row.real_sum.value();
    const bool has_width = look.table.real_sums ? std::isfinite(real) && real >= 0 : row.sum >= 0;
    if (has_width)
      rows_.push_back({text, look.table.real_sums ? fmt::format("{:.0f}", real) : decimal_text(row.sum)});
    else
      ++not_drawn;
  }
  if (not_drawn > 0 && tell_)
    tell_(
        fmt::format("the sums of {} are below 0 or no numbers: a flame graph does not have them; --by ustack without "
                    "--export shows them",
                    counted(not_drawn, "stack")));
}

void StackOutput::ending(const SessionSummary& summary) {
  for (const auto& [text, weight] : stacks_.all()) rows_.push_back({text, fmt::format("{}", std::llround(weight))});
  write_stacks(rows_, summary);
}

void StackOutput::give_up() {
  Output::give_up();
  for (std::size_t n = 0; n < kept_.size(); ++n) not_written_[n] += std::exchange(kept_[n], 0);
}

}  // namespace usdt::exports
