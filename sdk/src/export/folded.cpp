// SPDX-License-Identifier: BSD-2-Clause
// Folded stacks, which programs that draw flame graphs read: a line for each, its frames from the outermost on with ';'
// between them, a space, and a whole number.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "export/folded_stacks.hpp"
#include "export/formats.hpp"
#include "export/frames.hpp"
#include "export/table_output.hpp"
#include "export/table_words.hpp"
#include "io/escape.hpp"

namespace usdt::exports {
namespace {

/// Events' stacks are kept folded until the end, in so many bytes.
constexpr std::size_t kMostStackBytes = 64U << 20;

class FoldedOutput final : public Output {
 public:
  FoldedOutput(const AnswerStart& start, const OutputPlace& place)
      : Output(start, place),
        view_(start.question.view),
        kernel_(start.question.stacks.kernel_depth > 0),
        user_(start.question.stacks.user_depth > 0) {
    trace(start.plan, start.plan.probes.size());
  }

  /// Nothing is printed for it yet, so that it is no line to wait for.
  void event(const Event& event) override {
    const std::uint32_t probe = event.site().probe.value;
    if (stacks_.add(stack_of(event), event.weight()))
      ++kept_[probe];
    else
      ++left_out_[probe];
  }
  [[nodiscard]] std::vector<std::uint64_t> folded_full() const override { return left_out_; }
  void table(const ArrangedTable& look) override;
  void ending(const SessionSummary& summary) override;
  void give_up() override;

 protected:
  void look_up(const AttachPlan& plan, std::size_t /*probes*/) override {
    kept_.resize(plan.probes.size());
    left_out_.resize(plan.probes.size());
  }
  void write_event(const Event& /*event*/) override {}
  /// A notice says it.
  void write_followed(const Followed& /*followed*/) override {}
  void write_summary(const SessionSummary& /*summary*/) override {}

 private:
  [[nodiscard]] std::string stack_of(const Event& event);
  void add(std::string& text, const Result<Stack>& stack);

  const View& view_;
  bool kernel_, user_;
  FoldedStacks stacks_{kMostStackBytes};
  std::vector<std::uint64_t> kept_;      ///< events in stacks_, by probe
  std::vector<std::uint64_t> left_out_;  ///< events that there was no room for, by probe
};

/// The process's stack, and on top of it the kernel's.
std::string FoldedOutput::stack_of(const Event& event) {
  std::string text;
  if (user_) add(text, around_.user_stack());
  if (kernel_ && !event.probe().file) add(text, around_.kernel_stack());
  return text.empty() ? "[no stack]" : text;
}

void FoldedOutput::add(std::string& text, const Result<Stack>& stack) {
  if (!stack) ++unreadable_;
  const std::string frames =
      stack ? folded_text(*stack, FoldedMarks::jit) : folded_word(fmt::format("[{}]", stack.error().message));
  if (!frames.empty()) text.append(text.empty() ? "" : ";").append(io::printable(frames));
}

/// Looks in between are of the hits so far: the last one has all.
void FoldedOutput::table(const ArrangedTable& look) {
  if (!look.last) return;
  for (const auto& [text, row] : folded_rows({view_, plan(), look.table, look.rows}, FoldedMarks::jit))
    out_.print("{} {}\n", text,
               look.table.real_sums ? fmt::format("{:.0f}", row.real_sum.value()) : decimal_text(row.sum));
}

void FoldedOutput::ending(const SessionSummary& /*summary*/) {
  for (const auto& [text, weight] : stacks_.all()) out_.print("{} {}\n", text, std::llround(weight));
}

/// Part of the lines is no flame graph of any of the events.
void FoldedOutput::give_up() {
  Output::give_up();
  for (std::size_t n = 0; n < kept_.size(); ++n) not_written_[n] += std::exchange(kept_[n], 0);
}

}  // namespace

std::unique_ptr<Output> make_folded_output(const AnswerStart& start, const OutputPlace& place) {
  return std::make_unique<FoldedOutput>(start, place);
}

}  // namespace usdt::exports
